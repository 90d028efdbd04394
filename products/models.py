"""Doorways to the admin site. The data is in DynamoDB (products.tables)."""

from slothpost_site.staff import Doorway


class Product(Doorway):
    class Meta(Doorway.Meta):
        default_permissions = ("view", "change")


class Post(Doorway):
    class Meta(Doorway.Meta):
        default_permissions = ("view", "change")
