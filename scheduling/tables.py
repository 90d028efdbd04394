"""What the clock leaves behind, in DynamoDB."""

from pynamodb.attributes import JSONAttribute, NumberAttribute, TTLAttribute, UnicodeAttribute

from slothpost_site.dynamo import BaseMeta, Table, table_name


class Tick(Table):
    """One run of the minute's task and what it found."""

    class Meta(BaseMeta):
        table_name = table_name("ticks")

    job = UnicodeAttribute(hash_key=True)
    key = UnicodeAttribute(range_key=True, attr_name="startedAt#id")
    started_at = NumberAttribute(attr_name="startedAt")
    seconds = NumberAttribute()
    reports = JSONAttribute()
    # The most shards that any tick has asked: fewer now would leave work where nobody looks.
    shards = NumberAttribute()
    expires_at = TTLAttribute(attr_name="expiresAt")
