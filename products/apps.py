from django.apps import AppConfig


class ProductsConfig(AppConfig):
    name = "products"

    def ready(self) -> None:
        from products import tables  # noqa: F401  declares this app's tables (dynamo.all_tables)
