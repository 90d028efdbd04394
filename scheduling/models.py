"""Doorways to the admin site. The data is in DynamoDB (scheduling.tables)."""

from slothpost_site.staff import Doorway


class Tick(Doorway):
    class Meta(Doorway.Meta):
        default_permissions = ("view",)
