"""What staff see and do in the admin site, and what everybody else does not."""

import itertools
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from html import unescape
from typing import Any
from urllib.parse import quote as percent

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone

from integrations import connections, deliveries
from integrations.connections import Account, Grant
from integrations.sources.base import Received
from integrations.tables import Delivery
from products import posts
from products.states import State
from products.tables import Post, Product
from scheduling import plans, ticks
from scheduling.due import run_due_products
from scheduling.ticks import TickReport
from slothpost_site import dynamo
from slothpost_site.staff import address
from tests.builders import NOW, approved_post, make_post, make_product, planned_product, reread
from tests.conftest import person, signed_in

pytestmark = pytest.mark.usefixtures("store")

LISTS = {
    "product": "/admin/products/product/",
    "post": "/admin/products/post/",
    "connection": "/admin/integrations/connection/",
    "delivery": "/admin/integrations/delivery/",
    "tick": "/admin/scheduling/tick/",
}
MADE_UP = (
    *(
        "x",
        "1",
        "/",
        "//",
        "1/",
        "/x",
        "1/x",
        "1/a/b/c",
        "..",
        "../..",
        "%2e%2e/x",
        "tick/x",
        "ü/ü",
    ),
    *("1_2Fx", "_2F_2F", "_", "_2", "#", "%00", "%FF", "1/%00", "{}", "%s"),
    *("a" * 3000, "1/" + "a" * 1025),
)
HOSTILE = "<script>alert(1)</script> & \"'"


def page_of(item: Any) -> str:
    """The item's page in the admin site."""
    if isinstance(item, Product):
        return address("products.product", f"{item.user_id}/{item.product_id}")
    return address("products.post", f"{item.user_id}/{item.key}")


def verb_of(item: Any, verb: str) -> str:
    return page_of(item).removesuffix("change/") + f"{verb}/"


def failed_post(product: Product, **fields: Any) -> Post:
    """A post that its owner approved and that its outlet refused."""
    post = publishing_post(product, **fields)
    posts.mark_failed(post, "The outlet said no.", now=NOW)
    return post


def publishing_post(product: Product, **fields: Any) -> Post:
    post = approved_post(product, **fields)
    posts.claim(post, lease="a1", until=NOW + timedelta(minutes=5), now=NOW)
    return post


def broken_product(user_id: str = "1", plan: str = "no plan at all") -> Product:
    """A product that is due and whose stored plan nobody can read."""
    return dynamo.change(planned_product(user_id=user_id), None, plan=plan)


def set_aside_product(user_id: str = "1") -> Product:
    product = broken_product(user_id)
    for week in range(1, 4):
        run_due_products(NOW + timedelta(days=7 * week))
    found: Product = reread(product)
    return found


def viewer(name: str = "vera") -> User:
    """Somebody of the staff who may look at everything and change nothing."""
    user = person(name, is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__startswith="view_"))
    return user


def every_page(user_id: str = "1") -> list[str]:
    """A page of each kind, of items that exist."""
    product = planned_product(user_id=user_id)
    post = failed_post(product)
    key, *_ = arrive(1)
    ticks.record(NOW, {"products": TickReport(found=3)})
    tick = ticks.latest()
    assert tick is not None
    account = connections.connect(
        user_id, "vercel", Account("icfg_1", "Slow Boats"), Grant({}, refresh_at=NOW), now=NOW
    )
    return [
        address("integrations.connection", f"{account.user_id}/{account.key}"),
        *LISTS.values(),
        page_of(product),
        page_of(post),
        address("integrations.delivery", key),
        address("scheduling.tick", f"{tick.job}/{tick.key}"),
    ]


def arrive(count: int, now: datetime | None = None, **fields: Any) -> list[str]:
    """Deliveries from GitHub; the keys they are kept under."""
    for number in range(count):
        received = Received(delivery_id=f"d{number:03}", event="push", **fields)
        deliveries.take_in(received, "github", now or timezone.now())
        deliveries.settle(received, "github", [], now or timezone.now())
    return [f"github:d{number:03}" for number in range(count)]


def listed(client: Client, url: str) -> list[str]:
    """The addresses of all the items of a list, page after page."""
    found: list[str] = []
    pages = 0
    while True:
        page = client.get(url).content.decode()
        found += re.findall(r'<th scope="row"><a href="([^"]+)">', page)
        pages += 1
        following = re.search(r'<a href="([^"]+)" rel="next">', page)
        if following is None:
            assert pages > 1, "a list of one page shows nothing of paging"
            return found
        url = url.partition("?")[0] + unescape(following[1])


# -- who may do what -------------------------------------------------------------------------------


def test_a_stranger_is_sent_to_log_in(db: None) -> None:
    for url in every_page():
        answer = Client().get(url, follow=True)
        assert answer.redirect_chain[-1][0].startswith("/accounts/login/?next="), url


def test_a_customer_has_no_access_even_to_their_own(alice: User) -> None:
    client = signed_in(alice)
    for url in every_page(str(alice.pk)):
        assert client.get(url, follow=True).status_code == 403, url


def test_staff_without_the_permission_see_nothing(db: None) -> None:
    client = signed_in(person("nobody", is_staff=True))
    assert [client.get(url).status_code for url in every_page()] == [403] * 10


def test_staff_who_may_only_look_see_everything_and_can_do_nothing(db: None) -> None:
    client = signed_in(viewer())
    assert [client.get(url).status_code for url in every_page()] == [200] * 10
    post = failed_post(planned_product())
    assert "Try again" not in client.get(page_of(post)).content.decode()
    assert client.get(verb_of(post, "retry")).status_code == 403
    assert client.post(verb_of(post, "retry")).status_code == 403
    assert reread(post).state == State.FAILED
    assert not LogEntry.objects.exists()


def test_nothing_can_be_added_or_deleted_and_no_page_of_rows_is_left(sam: User) -> None:
    client = signed_in(sam)
    product = make_product()
    urls = [f"{LISTS['product']}add/", verb_of(product, "delete"), verb_of(product, "history")]
    assert [client.get(url).status_code for url in urls] == [404, 404, 404]
    assert client.post(LISTS["product"]).status_code == 405
    assert client.post(page_of(product)).status_code == 405


def test_deliveries_and_ticks_have_no_verbs_for_anybody(sam: User) -> None:
    client = signed_in(sam)
    (key,) = arrive(1)
    url = address("integrations.delivery", key).removesuffix("change/")
    assert client.post(f"{url}retry/").status_code == 404


# -- acting ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "verb", "label", "holds"),
    [
        (planned_product, "pause", "Pause the plan", lambda p: p.paused_at and not p.next_run_at),
        (failed_post, "retry", "Try again", lambda p: p.state == State.APPROVED),
        (publishing_post, "release", "Release", lambda p: p.state == State.PUBLISHING),
    ],
    ids=["pause", "retry", "release"],
)
def test_a_verb_asks_first_then_acts_and_is_logged(
    sam: User, make: Any, verb: str, label: str, holds: Callable[[Any], bool]
) -> None:
    client = signed_in(sam)
    item = make() if make is planned_product else make(planned_product())
    assert f">{label}</a>" in client.get(page_of(item)).content.decode()

    asked = client.get(verb_of(item, verb))
    assert f'value="{label}"' in asked.content.decode()
    assert reread(item).serialize() == item.serialize()
    assert not LogEntry.objects.exists()

    answer = client.post(verb_of(item, verb), follow=True)
    assert answer.redirect_chain == [(page_of(item), 302)]
    assert holds(reread(item))
    assert reread(item).serialize() != item.serialize()
    entry = LogEntry.objects.get()
    assert entry.user == sam
    assert entry.get_admin_url() == page_of(item)
    assert entry.get_change_message() in answer.content.decode()
    assert f'<a href="{page_of(item)}">{entry.object_repr}</a>' in (
        client.get("/admin/").content.decode()
    )


def test_a_retried_post_names_who_of_the_staff_did_it(sam: User) -> None:
    post = failed_post(planned_product())
    answer = signed_in(sam).post(verb_of(post, "retry"), follow=True)
    assert f"failed → approved, by staff {sam.pk} (tried again)" in answer.content.decode()


def test_a_released_post_is_due_at_once(sam: User) -> None:
    post = publishing_post(planned_product())
    before = post.work_at
    signed_in(sam).post(verb_of(post, "release"))
    assert reread(post).work_at > before  # now, which is later than the tests' own time
    assert reread(post).work_at <= timezone.now().timestamp() * 1000


def test_a_text_that_nobody_approved_is_not_sent_by_staff(sam: User) -> None:
    post = failed_post(planned_product())
    posts.edit(post, "Another text.", seen=posts.text_hash(post), now=NOW, by="1")
    answer = signed_in(sam).post(verb_of(post, "retry"), follow=True)
    assert "Its owner has not approved this text: only they can." in answer.content.decode()
    assert reread(post).state == State.FAILED
    assert not LogEntry.objects.exists()


def test_a_verb_that_comes_too_late_says_what_it_found(sam: User) -> None:
    post = failed_post(planned_product())
    client = signed_in(sam)
    client.post(verb_of(post, "retry"))
    moved = reread(post).serialize()
    answer = client.post(verb_of(post, "retry"), follow=True).content.decode()
    assert "Nothing was changed: this post was already approved at" in answer
    assert reread(post).serialize() == moved
    assert LogEntry.objects.count() == 1


def test_resume_mends_a_product_that_was_set_aside(sam: User) -> None:
    client = signed_in(sam)
    product = set_aside_product()
    assert "is not JSON" in client.get(LISTS["product"]).content.decode()

    still_broken = client.post(verb_of(product, "resume"), follow=True).content.decode()
    assert "The stored plan is not JSON: save the plan again." in still_broken
    assert not LogEntry.objects.exists()

    dynamo.change(product, None, plan=planned_product(user_id="2").plan)
    client.post(verb_of(product, "resume"))
    mended = reread(product)
    assert mended.schedule_error is None
    assert mended.next_run_at > timezone.now().timestamp() * 1000
    assert not listed_once(client, LISTS["product"])


def listed_once(client: Client, url: str) -> list[str]:
    return re.findall(r'<th scope="row"><a href="([^"]+)">', client.get(url).content.decode())


def test_only_what_fits_is_offered(sam: User) -> None:
    client = signed_in(sam)
    product = planned_product()
    page = client.get(page_of(product)).content.decode()
    assert ("Pause the plan" in page, "Resume the plan" in page) == (True, False)
    plans.pause(product, now=NOW)
    page = client.get(page_of(product)).content.decode()
    assert ("Pause the plan" in page, "Resume the plan" in page) == (False, True)


# -- lists -----------------------------------------------------------------------------------------


def set_aside_products() -> list[Any]:
    made = [make_product(str(user)) for user in range(30)]
    for at, product in enumerate(made):
        dynamo.change(
            product, None, trouble_status="open", trouble_at=at // 2, schedule_error="Broken."
        )
    return made


def posts_at_all_hours(make: Callable[..., Post]) -> list[Any]:
    product = planned_product()
    return [make(product, slot_at=NOW + timedelta(hours=hour)) for hour in range(30)]


@pytest.mark.parametrize(
    ("url", "make"),
    [
        (LISTS["product"], set_aside_products),
        (
            f"{LISTS['product']}?list=due",
            lambda: [planned_product(user_id=str(n)) for n in range(30)],
        ),
        (f"{LISTS['product']}?q=1", lambda: [make_product() for _ in range(30)]),
        (LISTS["post"], lambda: posts_at_all_hours(failed_post)),
        (f"{LISTS['post']}?list=due", lambda: posts_at_all_hours(publishing_post)),
        (f"{LISTS['post']}?q=1", lambda: posts_at_all_hours(make_post)),
    ],
    ids=["set aside", "due", "of a user", "in trouble", "due posts", "posts of a user"],
)
def test_a_list_of_many_loses_and_doubles_nothing(
    sam: User, url: str, make: Callable[[], list[Any]]
) -> None:
    made = make()
    assert sorted(listed(signed_in(sam), url)) == sorted(page_of(item) for item in made)


def test_a_day_of_deliveries_loses_and_doubles_nothing(sam: User) -> None:
    now = timezone.now()
    wanted = [address("integrations.delivery", key) for key in arrive(30, now)]
    url = f"{LISTS['delivery']}?list={now.date().isoformat()}"
    assert sorted(listed(signed_in(sam), url)) == sorted(wanted)


def test_ticks_come_newest_first_and_none_is_lost(sam: User) -> None:
    for minute in range(30):
        ticks.record(NOW + timedelta(minutes=minute), {"products": TickReport()})
    kept = ticks.Tick.query(ticks.JOB, scan_index_forward=False)
    assert listed(signed_in(sam), LISTS["tick"]) == [
        address("scheduling.tick", f"{tick.job}/{tick.key}") for tick in kept
    ]


def test_a_day_links_to_its_neighbours_within_what_is_kept(sam: User) -> None:
    client = signed_in(sam)
    today = timezone.now().date()
    day = today - timedelta(days=9)
    page = client.get(f"{LISTS['delivery']}?list={day}").content.decode()
    wanted = [today, *(day + timedelta(days=step) for step in (1, 0, -1))]
    assert re.findall(r'href="\?list=([\d-]+)"', page) == [one.isoformat() for one in wanted]
    page = client.get(LISTS["delivery"]).content.decode()
    wanted = [today, today - timedelta(days=1)]
    assert re.findall(r'href="\?list=([\d-]+)"', page) == [one.isoformat() for one in wanted]
    for gone in (today - timedelta(days=40), "0001-01-01", "2026-13-01", "yesterday"):
        assert client.get(f"{LISTS['delivery']}?list={gone}").status_code == 404


def test_a_cursor_of_another_list_user_or_maker_is_refused(sam: User) -> None:
    client = signed_in(sam)
    for user in ("1", "2"):
        for _ in range(26):
            make_product(user)
    page = client.get(f"{LISTS['product']}?q=1").content.decode()
    cursor = percent(re.search(r'cursor=([^"&]+)" rel="next"', page)[1], safe="%")
    assert client.get(f"{LISTS['product']}?q=1&cursor={cursor}").status_code == 200
    for foreign in ("?q=2&cursor=", "?list=due&cursor=", "?list=aside&cursor="):
        assert client.get(f"{LISTS['product']}{foreign}{cursor}").status_code == 404
    assert client.get(f"{LISTS['product']}?q=1&cursor=made-up").status_code == 404


def test_a_user_is_found_by_address_or_id_and_said_to_be_missing(sam: User, alice: User) -> None:
    client = signed_in(sam)
    mine = make_product(str(alice.pk))
    make_product("999")
    for query in ("alice@example.com", "ALICE@example.com", str(alice.pk)):
        assert listed_once(client, f"{LISTS['product']}?q={query}") == [page_of(mine)]
    for query in ("carol@example.com", "%00", "x" * 300, "'--"):
        answer = client.get(f"{LISTS['product']}?q={query}")
        assert (answer.status_code, listed_once(client, f"{LISTS['product']}?q={query}")) == (
            200,
            [],
        )


def test_due_lists_say_how_late_each_is_and_leave_out_what_is_to_come(sam: User) -> None:
    client = signed_in(sam)
    late = planned_product()
    planned_product(now=timezone.now())
    page = client.get(f"{LISTS['product']}?list=due").content.decode()
    assert listed_once(client, f"{LISTS['product']}?list=due") == [page_of(late)]
    assert re.search(r"<td>\d+\xa0(year|month|week|day)", page)


def test_every_shard_has_its_own_due_list(sam: User, settings: Any) -> None:
    settings.SCHEDULE_SHARDS = 3
    made = [planned_product(user_id=str(user)) for user in range(30)]
    client = signed_in(sam)
    found = [listed_once(client, f"{LISTS['product']}?list=due{n}") for n in ("", "1", "2")]
    assert all(found)
    assert sorted(itertools.chain(*found)) == sorted(page_of(item) for item in made)


def test_staff_pages_never_scan(sam: User) -> None:
    asked: set[str] = set()
    urls = [*every_page(str(sam.pk)), f"{LISTS['product']}?list=due", f"{LISTS['post']}?q={sam.pk}"]
    client = signed_in(sam)
    dynamo.client().meta.events.register(
        "before-call.dynamodb", lambda model, **_: asked.add(model.name)
    )
    try:
        assert [client.get(url).status_code for url in urls] == [200] * 12
    finally:
        dynamo.forget_connections()
    assert asked == {"GetItem", "Query"}


# -- items -----------------------------------------------------------------------------------------


def test_an_item_shows_its_story_and_not_its_machinery(sam: User) -> None:
    post = failed_post(planned_product(user_id=str(sam.pk)))
    dynamo.change(post, None, permalink="https://example.com/c/1")
    page = signed_in(sam).get(page_of(post)).content.decode()
    for shown in ("The outlet said no.", "Tidewater has a dark theme.", "sam@example.com"):
        assert shown in page
    assert "drafting → awaiting review, by slothpost" in page
    assert '<a href="https://example.com/c/1" rel="nofollow">' in page
    assert str(post.approved_hash) not in page


def test_a_tick_shows_what_each_step_found_and_failed_at(sam: User) -> None:
    ticks.record(
        NOW,
        {
            "products": TickReport(3, 2, 1, requests=7, capacity_units=9.5, seconds=0.25),
            "posts": TickReport(error="StoreError: unreachable"),
        },
    )
    page = signed_in(sam).get(LISTS["tick"]).content.decode()
    assert "found 3, done 2, failed 1 (7 requests, 9.5 units, 0.250 s)" in page
    assert "StoreError: unreachable" in page


def test_hostile_words_are_shown_as_words(sam: User) -> None:
    client = signed_in(sam)
    product = planned_product(name=HOSTILE, link="javascript:alert(1)", pitch=HOSTILE)
    post = failed_post(product, text=HOSTILE)
    dynamo.change(post, None, reason=HOSTILE, permalink="javascript:alert(1)")
    (key,) = arrive(1, note=HOSTILE)
    client.post(verb_of(product, "pause"))
    for url in (
        page_of(product),
        verb_of(product, "resume"),
        page_of(post),
        address("integrations.delivery", key),
        LISTS["post"],
        LISTS["delivery"],
        f"{LISTS['product']}?q={percent(HOSTILE)}",
        "/admin/",
    ):
        page = client.get(url).content.decode()
        assert "<script>alert" not in page, url
        assert "&lt;script&gt;alert(1)" in page, url
        assert 'href="javascript:' not in page, url


def test_an_item_that_cannot_be_read_is_said_and_not_a_failure(sam: User) -> None:
    client = signed_in(sam)
    product = planned_product()
    dynamo.client().update_item(
        TableName=Product.Meta.table_name,
        Key={"userId": {"S": product.user_id}, "productId": {"S": product.product_id}},
        UpdateExpression="SET #plan = :number",
        ExpressionAttributeNames={"#plan": "plan"},
        ExpressionAttributeValues={":number": {"N": "5"}},
    )
    for url in (page_of(product), f"{LISTS['product']}?q=1", f"{LISTS['product']}?list=due"):
        answer = client.get(url)
        assert (answer.status_code, "cannot be read" in answer.content.decode()) == (200, True)
    assert client.post(verb_of(product, "pause"), follow=True).status_code == 200
    assert not LogEntry.objects.exists()


def test_a_broken_plan_is_said_on_the_product_and_pausing_it_is_refused(sam: User) -> None:
    client = signed_in(sam)
    product = broken_product()
    assert (
        "Cannot run. The stored plan is not JSON" in client.get(page_of(product)).content.decode()
    )
    answer = client.post(verb_of(product, "pause"), follow=True).content.decode()
    assert "The stored plan is not JSON: save the plan again." in answer


def test_no_made_up_id_is_more_than_not_found(sam: User) -> None:
    client = signed_in(sam)
    for url, object_id, end in itertools.product(
        LISTS.values(), MADE_UP, ("change", "pause", "retry")
    ):
        path = f"{url}{percent(object_id, safe='/%')}/{end}/"
        answers = client.get(path).status_code, client.post(path).status_code
        assert answers in {(404, 404), (404, 405)}, path


def test_a_key_of_any_letters_survives_the_way_through_an_address(sam: User) -> None:
    key = "vercel:a/b_c#d?e=f&g h%2F_2F<ü>"
    dynamo.put_new(
        Delivery(key, source="vercel", event="x", received_at=0, expires_at=NOW, outcome="Arrived.")
    )
    answer = signed_in(sam).get(address("integrations.delivery", key))
    assert "Arrived." in answer.content.decode()


def test_the_page_of_a_post_names_what_it_rests_on(sam: User) -> None:
    post = make_post(make_product(), text=None)
    posts.fill(post, now=NOW, text="Words.", evidence=[{"key": "k", "title": "Add a dark theme"}])
    answer = signed_in(sam).get(page_of(post))
    assert answer.status_code == 200
    assert "Add a dark theme" in answer.content.decode()
