from django.apps import AppConfig


class IntegrationsConfig(AppConfig):
    name = "integrations"

    def ready(self) -> None:
        from integrations import tables  # noqa: F401  declares this app's tables (dynamo.all_tables)
