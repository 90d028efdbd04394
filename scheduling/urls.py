from django.urls import path

from scheduling import views

urlpatterns = [
    path("products/<slug:product_id>/plan/", views.plan, name="plan"),
    path("products/<slug:product_id>/plan/pause/", views.pause, name="plan_pause"),
    path("products/<slug:product_id>/plan/resume/", views.resume, name="plan_resume"),
]
