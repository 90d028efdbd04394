from django.urls import path

from products import changelog, views

urlpatterns = [
    path("", views.review, name="review"),
    path("posts/<slug:slot>/<slug:product_id>/<slug:outlet>/", views.post, name="post"),
    path("slots/<slug:slot>/<slug:product_id>/approve/", views.approve_slot, name="approve_slot"),
    path("text-length/", views.count_text, name="text_length"),
    path("history/", views.history, name="history"),
    path("products/", views.products, name="products"),
    path("products/new/", views.product_new, name="product_new"),
    path("products/<slug:product_id>/", views.product, name="product"),
    path("products/<slug:product_id>/edit/", views.product_edit, name="product_edit"),
    path("products/<slug:product_id>/github/", views.follow_repository, name="follow_repository"),
    path("products/<slug:product_id>/vercel/", views.follow_vercel, name="follow_vercel"),
    path("products/<slug:product_id>/activity/", views.activities, name="activity"),
    path("products/<slug:product_id>/activity/judge/", views.judge, name="judge"),
    path("c/<slug:slug>/", changelog.page, name="changelog"),
    path("c/<slug:slug>/feed.atom", changelog.feed, name="changelog_feed"),
    path("c/<slug:slug>/<slug:entry_id>/", changelog.entry, name="changelog_entry"),
]
