"""What people own and decide, in DynamoDB.

Attribute names on the wire are camelCase and stable: other tools read these tables. An attribute
that feeds a sparse index is present only while the work it stands for is pending.
"""

import json
from zoneinfo import ZoneInfo

from pynamodb.attributes import (
    BooleanAttribute,
    JSONAttribute,
    ListAttribute,
    NumberAttribute,
    UnicodeAttribute,
)
from pynamodb.indexes import (
    AllProjection,
    GlobalSecondaryIndex,
    IncludeProjection,
    KeysOnlyProjection,
)

from slothpost_site.dynamo import BaseMeta, Table, table_name


class ScheduleIndex(GlobalSecondaryIndex["Product"]):
    """Which products need drafts now? Carries what the tick reads and no more."""

    class Meta(BaseMeta):
        index_name = "scheduleStatus-nextRunAt-index"
        projection = IncludeProjection(
            ["plan", "planVersion", "nextSlotAt", "leadMinutes", "draftedSlots", "scheduleAttempts"]
        )

    schedule_status = UnicodeAttribute(hash_key=True, attr_name="scheduleStatus")
    next_run_at = NumberAttribute(range_key=True, attr_name="nextRunAt")


class GitHubRepoIndex(GlobalSecondaryIndex["Product"]):
    """Whose push is this? By the numeric id, which survives renames."""

    class Meta(BaseMeta):
        index_name = "githubRepoId-index"
        projection = KeysOnlyProjection()

    github_repo_id = UnicodeAttribute(hash_key=True, attr_name="githubRepoId")


class VercelProjectIndex(GlobalSecondaryIndex["Product"]):
    """Whose deployment is this?"""

    class Meta(BaseMeta):
        index_name = "vercelProjectId-index"
        projection = KeysOnlyProjection()

    vercel_project_id = UnicodeAttribute(hash_key=True, attr_name="vercelProjectId")


class AppStoreIndex(GlobalSecondaryIndex["Product"]):
    """Whose app version is this?"""

    class Meta(BaseMeta):
        index_name = "appStoreId-index"
        projection = KeysOnlyProjection()

    app_store_id = UnicodeAttribute(hash_key=True, attr_name="appStoreId")


class FetchIndex(GlobalSecondaryIndex["Product"]):
    """Whose sources are to be asked now?"""

    class Meta(BaseMeta):
        index_name = "fetchStatus-fetchAt-index"
        projection = KeysOnlyProjection()

    fetch_status = UnicodeAttribute(hash_key=True, attr_name="fetchStatus")
    fetch_at = NumberAttribute(range_key=True, attr_name="fetchAt")


class ProductTroubleIndex(GlobalSecondaryIndex["Product"]):
    """Which products were set aside and wait for a person to mend them?"""

    class Meta(BaseMeta):
        index_name = "troubleStatus-troubleAt-index"
        projection = IncludeProjection(["name", "scheduleError"])

    trouble_status = UnicodeAttribute(hash_key=True, attr_name="troubleStatus")
    trouble_at = NumberAttribute(range_key=True, attr_name="troubleAt")


class Product(Table):
    """What a developer builds and talks about. The owner is the partition key."""

    class Meta(BaseMeta):
        table_name = table_name("products")

    user_id = UnicodeAttribute(hash_key=True, attr_name="userId")
    product_id = UnicodeAttribute(range_key=True, attr_name="productId")
    name = UnicodeAttribute()
    slug = UnicodeAttribute()
    link = UnicodeAttribute(null=True)
    pitch = UnicodeAttribute(null=True)
    audience = UnicodeAttribute(null=True)
    voice = UnicodeAttribute(null=True)
    created_at = NumberAttribute(attr_name="createdAt")

    # What it follows; each id feeds a sparse index. `via` is the key of the connection that has
    # shown that its owner may see it; absent where it is followed as anybody can.
    github_repo_id = UnicodeAttribute(null=True, attr_name="githubRepoId")
    github_repo_name = UnicodeAttribute(null=True, attr_name="githubRepoName")
    github_via = UnicodeAttribute(null=True, attr_name="githubVia")
    vercel_project_id = UnicodeAttribute(null=True, attr_name="vercelProjectId")
    vercel_project_name = UnicodeAttribute(null=True, attr_name="vercelProjectName")
    vercel_via = UnicodeAttribute(null=True, attr_name="vercelVia")
    app_store_id = UnicodeAttribute(null=True, attr_name="appStoreId")
    app_store_name = UnicodeAttribute(null=True, attr_name="appStoreName")
    app_store_via = UnicodeAttribute(null=True, attr_name="appStoreVia")

    # What was followed first, as JSON of source: follow id. What comes later has a scope.
    first_followed = JSONAttribute(null=True, attr_name="firstFollowed")

    # Where it posts: JSON of outlet: key of the connection.
    accounts = JSONAttribute(null=True)
    # The most that its posts may cost in a month, in US dollars as text; none for no cap.
    monthly_cap = UnicodeAttribute(null=True, attr_name="monthlyCap")

    # What is private, and what its owner allows: JSON of source: since when (epoch ms).
    private_since = JSONAttribute(null=True, attr_name="privateSince")
    private_allowed = JSONAttribute(null=True, attr_name="privateAllowed")
    private_detail = UnicodeAttribute(null=True, attr_name="privateDetail")  # "full", or titles
    never_mention = UnicodeAttribute(null=True, attr_name="neverMention")  # a word a line

    # When its sources are to be asked, and how far they were read: JSON of source: what
    # products.following says. The first three are set and removed together.
    fetch_status = UnicodeAttribute(null=True, attr_name="fetchStatus")
    fetch_at = NumberAttribute(null=True, attr_name="fetchAt")
    fetch_asked_at = NumberAttribute(null=True, attr_name="fetchAskedAt")
    fetch_attempts = NumberAttribute(null=True, attr_name="fetchAttempts")
    fetched_at = NumberAttribute(null=True, attr_name="fetchedAt")
    fetched = JSONAttribute(null=True)

    # The plan as JSON text (scheduling.weekly) and the person's choices around it.
    plan = UnicodeAttribute(null=True)
    plan_version = NumberAttribute(attr_name="planVersion", default=0)
    lead_minutes = NumberAttribute(attr_name="leadMinutes", default=12 * 60)
    late_approval = UnicodeAttribute(attr_name="lateApproval", default="hold")
    quiet_week = UnicodeAttribute(attr_name="quietWeek", default="skip")
    late_limit_minutes = NumberAttribute(attr_name="lateLimitMinutes", default=120)
    paused_at = NumberAttribute(null=True, attr_name="pausedAt")
    paused_until = NumberAttribute(null=True, attr_name="pausedUntil")

    # When it is due: set and removed together, by scheduling.due alone.
    schedule_status = UnicodeAttribute(null=True, attr_name="scheduleStatus")
    next_run_at = NumberAttribute(null=True, attr_name="nextRunAt")
    next_slot_at = NumberAttribute(null=True, attr_name="nextSlotAt")
    # Per outlet the slots whose posts were begun, in that order: those to come and the last one.
    drafted_slots = JSONAttribute(null=True, attr_name="draftedSlots")
    tzdata_version = UnicodeAttribute(null=True, attr_name="tzdataVersion")

    # Set aside after repeated failures: shown to the owner and to staff.
    schedule_attempts = NumberAttribute(null=True, attr_name="scheduleAttempts")
    schedule_error = UnicodeAttribute(null=True, attr_name="scheduleError")
    trouble_status = UnicodeAttribute(null=True, attr_name="troubleStatus")
    trouble_at = NumberAttribute(null=True, attr_name="troubleAt")

    due = ScheduleIndex()
    to_fetch = FetchIndex()
    by_github_repo = GitHubRepoIndex()
    by_vercel_project = VercelProjectIndex()
    by_app_store_app = AppStoreIndex()
    in_trouble = ProductTroubleIndex()

    @property
    def timezone(self) -> str:
        """The zone that the plan's times are meant in; UTC while no plan can be read."""
        try:
            zone = json.loads(self.plan or "")["timezone"]
            ZoneInfo(zone)
        except (KeyError, OSError, TypeError, ValueError):
            return "UTC"
        return str(zone)


class Slug(Table):
    """Which product a public address belongs to; the key makes it unique."""

    class Meta(BaseMeta):
        table_name = table_name("slugs")

    slug = UnicodeAttribute(hash_key=True)
    user_id = UnicodeAttribute(attr_name="userId")
    product_id = UnicodeAttribute(attr_name="productId")


class Activity(Table):
    """One thing that happened. The key is the fact, so that a redelivery is a no-op."""

    class Meta(BaseMeta):
        table_name = table_name("activity")

    product_id = UnicodeAttribute(hash_key=True, attr_name="productId")
    key = UnicodeAttribute(range_key=True, attr_name="occurredAt#source#id")
    source = UnicodeAttribute()
    # The follow id that it was heard by, where that is not the first of its source: pull requests,
    # tags and versions are counted anew in each repository.
    scope = UnicodeAttribute(null=True)
    kind = UnicodeAttribute()
    title = UnicodeAttribute()
    body = UnicodeAttribute(null=True)
    link = UnicodeAttribute(null=True)
    version = UnicodeAttribute(null=True)
    author = UnicodeAttribute(null=True)
    refs = JSONAttribute(null=True)
    stage = UnicodeAttribute(
        null=True
    )  # how far it got by itself: integrations.sources.base.STAGES
    said = UnicodeAttribute(null=True)  # its author's own words for a post
    about = JSONAttribute(null=True)  # refs of other work: {"reverts": [...], "fixes": [...]}
    private = BooleanAttribute(null=True)  # not open to everybody when it was recorded
    occurred_at = NumberAttribute(attr_name="occurredAt")
    recorded_at = NumberAttribute(attr_name="recordedAt")
    # Ignored, because ...; absent on a story, which has `storyAt`: when it became one.
    ignored = UnicodeAttribute(null=True)
    story_at = NumberAttribute(null=True, attr_name="storyAt")
    overruled = UnicodeAttribute(null=True)


class Fact(Table):
    """That an activity exists, by its source and id alone, and the time it was first given."""

    class Meta(BaseMeta):
        table_name = table_name("facts")

    product_id = UnicodeAttribute(hash_key=True, attr_name="productId")
    key = UnicodeAttribute(range_key=True, attr_name="source#id")
    occurred_at = NumberAttribute(attr_name="occurredAt")


class WorkIndex(GlobalSecondaryIndex["Post"]):
    """Which posts need a machine now: to write, publish, retry, recover?"""

    class Meta(BaseMeta):
        index_name = "workStatus-workAt-index"
        projection = KeysOnlyProjection()

    work_status = UnicodeAttribute(hash_key=True, attr_name="workStatus")
    work_at = NumberAttribute(range_key=True, attr_name="workAt")


class ReviewIndex(GlobalSecondaryIndex["Post"]):
    """What is still open for this person? Everything the queue shows, in one query."""

    class Meta(BaseMeta):
        index_name = "reviewUserId-slotAt-index"
        projection = AllProjection()

    review_user_id = UnicodeAttribute(hash_key=True, attr_name="reviewUserId")
    slot_at = NumberAttribute(range_key=True, attr_name="slotAt")


class OutletIndex(GlobalSecondaryIndex["Post"]):
    """What has this outlet of this product been told, and what does it still hold?"""

    class Meta(BaseMeta):
        index_name = "productOutlet-slotAt-index"
        projection = IncludeProjection(["state", "evidence"])

    product_outlet = UnicodeAttribute(hash_key=True, attr_name="productOutlet")
    slot_at = NumberAttribute(range_key=True, attr_name="slotAt")


class PostTroubleIndex(GlobalSecondaryIndex["Post"]):
    """Which posts failed, or may or may not be out?"""

    class Meta(BaseMeta):
        index_name = "troubleStatus-troubleAt-index"
        projection = IncludeProjection(["state", "reason"])

    trouble_status = UnicodeAttribute(hash_key=True, attr_name="troubleStatus")
    trouble_at = NumberAttribute(range_key=True, attr_name="troubleAt")


class Post(Table):
    """One text for one outlet and one slot, through its life (products.states)."""

    class Meta(BaseMeta):
        table_name = table_name("posts")

    user_id = UnicodeAttribute(hash_key=True, attr_name="userId")
    key = UnicodeAttribute(range_key=True, attr_name="slotAt#productId#outlet")
    product_id = UnicodeAttribute(attr_name="productId")
    outlet = UnicodeAttribute()
    product_outlet = UnicodeAttribute(attr_name="productOutlet")
    slot_at = NumberAttribute(attr_name="slotAt")
    state = UnicodeAttribute()
    # Every move of the post, oldest first: JSON objects with at, from, to, by and why.
    history = ListAttribute[UnicodeAttribute](of=UnicodeAttribute)

    # Pending work and pending decisions; each pair is present only while something is.
    work_status = UnicodeAttribute(null=True, attr_name="workStatus")
    work_at = NumberAttribute(null=True, attr_name="workAt")
    review_user_id = UnicodeAttribute(null=True, attr_name="reviewUserId")
    trouble_status = UnicodeAttribute(null=True, attr_name="troubleStatus")
    trouble_at = NumberAttribute(null=True, attr_name="troubleAt")

    # The text and what it rests on.
    text = UnicodeAttribute(null=True)
    evidence = JSONAttribute(null=True)
    previous_slot_at = NumberAttribute(null=True, attr_name="previousSlotAt")
    variation = NumberAttribute(attr_name="variation", default=0)
    missed_slots = JSONAttribute(null=True, attr_name="missedSlots")

    # Kept from the product, so that the queue needs no second read.
    product_name = UnicodeAttribute(null=True, attr_name="productName")
    timezone = UnicodeAttribute(null=True)

    # The account that it goes to: the connection's key, and what people call it.
    account = UnicodeAttribute(null=True)
    account_name = UnicodeAttribute(null=True, attr_name="accountName")

    # Approval and publishing.
    send_at = NumberAttribute(null=True, attr_name="sendAt")
    approved_hash = UnicodeAttribute(null=True, attr_name="approvedHash")
    approved_at = NumberAttribute(null=True, attr_name="approvedAt")
    lease = UnicodeAttribute(null=True)
    claimed_at = NumberAttribute(null=True, attr_name="claimedAt")
    kept = JSONAttribute(null=True)  # what its outlet needs to find out what became of an attempt
    attempts = NumberAttribute(attr_name="attempts", default=0)
    reason = UnicodeAttribute(null=True)
    held_for = UnicodeAttribute(null=True, attr_name="heldFor")  # the account that stopped it
    external_id = UnicodeAttribute(null=True, attr_name="externalId")
    permalink = UnicodeAttribute(null=True)
    published_at = NumberAttribute(null=True, attr_name="publishedAt")
    price = UnicodeAttribute(null=True)  # what publishing it cost, in US dollars

    # What people made of it: JSON of number by name, when that was read, and how often.
    numbers = JSONAttribute(null=True)
    numbers_at = NumberAttribute(null=True, attr_name="numbersAt")
    numbers_read = NumberAttribute(attr_name="numbersRead", default=0)

    work = WorkIndex()
    open_for = ReviewIndex()
    of_outlet = OutletIndex()
    in_trouble = PostTroubleIndex()
