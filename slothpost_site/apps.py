from django.apps import AppConfig
from django.core import checks as django_checks


class SlothPostSiteConfig(AppConfig):
    name = "slothpost_site"

    def ready(self) -> None:
        from slothpost_site import checks

        for check in checks.CHECKS:
            django_checks.register(check)
