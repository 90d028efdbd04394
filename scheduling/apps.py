from django.apps import AppConfig
from django.db.models.signals import post_migrate


class SchedulingConfig(AppConfig):
    name = "scheduling"

    def ready(self) -> None:
        from scheduling import tables, tasks  # noqa: F401  declares this app's tables

        post_migrate.connect(tasks.install, sender=self)
