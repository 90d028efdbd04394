from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from integrations.sources import SOURCES
from products import catalogue
from products.tables import Post, Product
from scheduling import plans
from scheduling.health import find_problems
from slothpost_site.dynamo import StoreError
from slothpost_site.moments import from_ms
from slothpost_site.paging import read_page


class Command(BaseCommand):
    help = "Say what is configured, what is missing and what is late. Fails if anything is wrong."

    def handle(self, *args: Any, **options: Any) -> None:
        now = timezone.now()
        for line in _configured():
            self.stdout.write(f"   {line}")
        wrong = find_problems(now)
        try:
            wrong += [*_set_aside(), *_lost(now)]
        except StoreError:
            self.stdout.write("   what else is wrong cannot be said while DynamoDB does not answer")
        for line in wrong:
            self.stdout.write(self.style.ERROR(f" ! {line}"))
        if wrong:
            raise CommandError(f"{len(wrong)} thing{'s' if len(wrong) > 1 else ''} to mend.")
        self.stdout.write(self.style.SUCCESS("   all well"))


def _configured() -> Iterator[str]:
    mode = "development" if settings.DEBUG else "production"
    yield f"{mode}, at {settings.SITE_URL}"
    yield f"users in {settings.DATABASES['default']['ENGINE'].rsplit('.', 1)[1]}"
    yield f"DynamoDB at {settings.DYNAMODB_ENDPOINT_URL or 'AWS, ' + settings.DYNAMODB_REGION}"
    yield f"tables {settings.DYNAMODB_TABLE_PREFIX}*, shards {settings.SCHEDULE_SHARDS}"
    for name, source in SOURCES.items():
        secret = "set" if source.secrets() else "NOT set: every delivery is refused"
        yield f"{name} webhooks at {settings.SITE_URL}/webhooks/{source.PATH}/, secret {secret}"
        accounts = "can be connected" if source.is_configured() else _not_set_up()
        yield f"{name} accounts {accounts}"


def _not_set_up() -> str:
    if settings.DEBUG and settings.STANDINS:
        return "NOT set up; while `make run` runs, a stand-in plays it there"
    return "NOT set up"


def _set_aside() -> Iterator[str]:
    for product in read_page(Product.in_trouble, "open").items:
        since = f"{from_ms(product.trouble_at):%Y-%m-%d %H:%M} UTC"
        yield f"product {product.product_id} set aside {since}: {product.schedule_error}"
    for post in read_page(Post.in_trouble, "open").items:
        yield f"post {post.key} of user {post.user_id} {post.state}: {post.reason}"


def _lost(now: datetime) -> Iterator[str]:
    """Plans that are on and yet due never: silence looks just like success."""
    for user_id in User.objects.values_list("pk", flat=True).iterator():
        cursor = ""
        while True:
            page = catalogue.list_for(str(user_id), cursor)
            for product in page.items:
                if plans.is_lost(product, now):
                    yield f"product {product.product_id} has a plan that nothing will run"
            cursor = page.next_cursor
            if not cursor:
                break
