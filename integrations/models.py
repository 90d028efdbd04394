"""Doorways to the admin site. The data is in DynamoDB (integrations.tables)."""

from slothpost_site.staff import Doorway


class Connection(Doorway):
    class Meta(Doorway.Meta):
        default_permissions = ("view",)


class Delivery(Doorway):
    class Meta(Doorway.Meta):
        default_permissions = ("view",)
        verbose_name_plural = "deliveries"
