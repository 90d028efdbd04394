"""Composition only: which address belongs to which view, and who hands what to whom."""

from allauth.account.decorators import secure_admin_login
from django.contrib import admin
from django.urls import include, path

from integrations import webhooks
from integrations.sources import SOURCES, app_store
from products import following
from scheduling import health

admin.autodiscover()
# One door for signing in, with its rate limits, also for staff.
admin.site.login = secure_admin_login(admin.site.login)  # type: ignore[method-assign]
admin.site.site_header = admin.site.site_title = "SlothPost staff"
admin.site.index_title = "What is late or failing"

urlpatterns = [
    path("", include("products.urls")),
    path("", include("scheduling.urls")),
    path("accounts/", include("allauth.urls")),
    path("admin/", admin.site.urls),
    *(
        path(
            f"webhooks/{source.PATH}/",
            webhooks.receiver(source, following.take),
            name=f"webhook_{name}",
        )
        for name, source in SOURCES.items()
    ),
    path(
        f"webhooks/{app_store.PATH}/<slug:hook>/",
        webhooks.receiver(app_store, following.take, hooks=app_store),
        name="webhook_app_store_hook",
    ),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", health.metrics, name="metrics"),
]
