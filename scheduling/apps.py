from django.apps import AppConfig


class SchedulingConfig(AppConfig):
    name = "scheduling"

    def ready(self) -> None:
        from scheduling import tables  # noqa: F401  declares this app's tables (dynamo.all_tables)
