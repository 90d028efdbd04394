from django.apps import AppConfig


class SlothPostSiteConfig(AppConfig):
    name = "slothpost_site"
