"""Tell the owners of posts that went astray, by mail: each once, with what it takes to decide."""

import logging
from datetime import datetime, timedelta
from smtplib import SMTPException

from django.conf import settings
from django.contrib.auth.models import User
from django.core.mail import EmailMessage
from django.template.loader import render_to_string

from integrations import connections
from products import posts
from products.cards import Draft
from products.tables import Post

logger = logging.getLogger(__name__)

# Whoever tells has so long; then somebody else does, since it may have died before the mail left.
LEASE = timedelta(minutes=5)
LONGEST_SUBJECT = 150


def tell(post: Post, now: datetime) -> bool:
    """Tell a post's owner that it was not sent, or perhaps sent. False if the mail did not leave;
    then it is tried again. An account that broke is told of by itself, with all that it holds up.

    Raises Conflict when somebody else tells it, or its owner was quicker.
    """
    posts.postpone(post, until=now + LEASE)
    ids = {"user_id": post.user_id, "post": post.key, "state": post.state}
    if not _is_told_with_its_account(post):
        owner = User.objects.filter(pk=post.user_id).first()
        if owner is None or not owner.email:
            logger.warning("nobody to tell", extra=ids)
        elif not _mail(post, owner.email, now):
            logger.error("mail not sent", extra=ids)
            return False
        else:
            logger.info("told that a post went astray", extra=ids)
    posts.note_told(post)
    return True


def _is_told_with_its_account(post: Post) -> bool:
    account = connections.find(post.user_id, post.held_for) if post.held_for else None
    return account is not None and not account.works


def _mail(post: Post, address: str, now: datetime) -> bool:
    draft = Draft(post, now)
    context = {"draft": draft, "address": settings.SITE_URL + draft.url}
    what = "May be out" if post.state == "unconfirmed" else "Not sent"
    subject = " ".join(f"{what}: {draft.name} {draft.place}".split())[:LONGEST_SUBJECT]
    text = render_to_string("scheduling/mail/astray.txt", context)
    try:
        EmailMessage(subject, text, None, [address]).send()
    except (SMTPException, OSError):
        logger.exception("a mail did not leave")
        return False
    return True
