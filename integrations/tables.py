"""The outside world in DynamoDB: connections, webhook deliveries, the public changelog."""

from pynamodb.attributes import (
    JSONAttribute,
    NumberAttribute,
    TTLAttribute,
    UnicodeAttribute,
)
from pynamodb.indexes import AllProjection, GlobalSecondaryIndex, KeysOnlyProjection

from slothpost_site.dynamo import BaseMeta, Table, table_name


class RefreshIndex(GlobalSecondaryIndex["Connection"]):
    """Which tokens must be renewed before they lapse?"""

    class Meta(BaseMeta):
        index_name = "refreshStatus-refreshAt-index"
        projection = KeysOnlyProjection()

    refresh_status = UnicodeAttribute(hash_key=True, attr_name="refreshStatus")
    refresh_at = NumberAttribute(range_key=True, attr_name="refreshAt")


class ExternalIndex(GlobalSecondaryIndex["Connection"]):
    """Whose account does a source speak of? An installation can be many people's."""

    class Meta(BaseMeta):
        index_name = "externalKey-index"
        projection = KeysOnlyProjection()

    external_key = UnicodeAttribute(hash_key=True, attr_name="externalKey")


class Connection(Table):
    """A user's authorised account at a source or outlet; `secrets` is encrypted.

    `broken` is why its owner has to connect it again, and absent while it works. `trouble` is what
    went wrong last and may pass by itself.
    """

    class Meta(BaseMeta):
        table_name = table_name("connections")

    user_id = UnicodeAttribute(hash_key=True, attr_name="userId")
    key = UnicodeAttribute(range_key=True, attr_name="provider#accountId")
    provider = UnicodeAttribute()
    account_id = UnicodeAttribute(attr_name="accountId")
    account_name = UnicodeAttribute(null=True, attr_name="accountName")
    external_key = UnicodeAttribute(null=True, attr_name="externalKey")
    details = JSONAttribute(null=True)
    secrets = UnicodeAttribute(null=True)
    scopes = JSONAttribute(null=True)
    connected_at = NumberAttribute(attr_name="connectedAt")
    checked_at = NumberAttribute(null=True, attr_name="checkedAt")
    expires_at = NumberAttribute(null=True, attr_name="expiresAt")

    # What is wrong, and whether its owner was told.
    broken = UnicodeAttribute(null=True)
    broken_at = NumberAttribute(null=True, attr_name="brokenAt")
    told_at = NumberAttribute(null=True, attr_name="toldAt")
    trouble = UnicodeAttribute(null=True)
    trouble_at = NumberAttribute(null=True, attr_name="troubleAt")

    # Who renews its secrets just now, and until when that counts.
    lease = UnicodeAttribute(null=True)
    lease_until = NumberAttribute(null=True, attr_name="leaseUntil")

    # When something has to be done by itself: its secrets renewed, or its owner told.
    refresh_status = UnicodeAttribute(null=True, attr_name="refreshStatus")
    refresh_at = NumberAttribute(null=True, attr_name="refreshAt")
    refresh_attempts = NumberAttribute(null=True, attr_name="refreshAttempts")

    # How many posts it took in the minute that was last used, and until when it takes none.
    turn_minute = NumberAttribute(null=True, attr_name="turnMinute")
    turns = NumberAttribute(null=True)
    limited_until = NumberAttribute(null=True, attr_name="limitedUntil")

    to_refresh = RefreshIndex()
    by_external_key = ExternalIndex()

    @property
    def works(self) -> bool:
        return self.broken is None


class Instance(Table):
    """What SlothPost is at a Mastodon instance, by its host; `secrets` is encrypted.

    Without `callback_url` the instance knows it no more.
    """

    class Meta(BaseMeta):
        table_name = table_name("instances")

    host = UnicodeAttribute(hash_key=True)
    secrets = UnicodeAttribute()
    callback_url = UnicodeAttribute(null=True, attr_name="callbackUrl")
    registered_at = NumberAttribute(attr_name="registeredAt")


class ProductDeliveriesIndex(GlobalSecondaryIndex["Delivery"]):
    """What reached this product? Only the items made for one product have `productId`."""

    class Meta(BaseMeta):
        index_name = "productId-receivedAt-index"
        projection = AllProjection()

    product_id = UnicodeAttribute(hash_key=True, attr_name="productId")
    received_at = NumberAttribute(range_key=True, attr_name="receivedAt")


class DayDeliveriesIndex(GlobalSecondaryIndex["Delivery"]):
    """What arrived on this day? Only the main items have `receivedOn`."""

    class Meta(BaseMeta):
        index_name = "receivedOn-receivedAt-index"
        projection = AllProjection()

    received_on = UnicodeAttribute(hash_key=True, attr_name="receivedOn")
    received_at = NumberAttribute(range_key=True, attr_name="receivedAt")


class Delivery(Table):
    """A webhook delivery and what became of it: one main item, and one per product it reached."""

    class Meta(BaseMeta):
        table_name = table_name("deliveries")

    delivery_id = UnicodeAttribute(hash_key=True, attr_name="deliveryId")
    source = UnicodeAttribute()
    event = UnicodeAttribute()
    received_at = NumberAttribute(attr_name="receivedAt")
    received_on = UnicodeAttribute(null=True, attr_name="receivedOn")
    product_id = UnicodeAttribute(null=True, attr_name="productId")
    user_id = UnicodeAttribute(null=True, attr_name="userId")
    outcome = UnicodeAttribute(null=True)
    expires_at = TTLAttribute(attr_name="expiresAt")

    by_product = ProductDeliveriesIndex()
    by_day = DayDeliveriesIndex()


class ChangelogEntry(Table):
    """A post published on a product's own public page. The key makes publishing it twice one."""

    class Meta(BaseMeta):
        table_name = table_name("changelog")

    slug = UnicodeAttribute(hash_key=True)
    entry_id = UnicodeAttribute(range_key=True, attr_name="entryId")
    text = UnicodeAttribute()
    published_at = NumberAttribute(attr_name="publishedAt")
    post_key = UnicodeAttribute(attr_name="postKey")
