"""What is told to people by mail, once."""

import logging
from datetime import datetime, timedelta
from smtplib import SMTPException

from django.conf import settings
from django.contrib.auth.models import User
from django.core.mail import send_mail
from django.template.loader import render_to_string
from django.urls import reverse

from integrations import connections
from integrations.providers import PROVIDERS
from integrations.tables import Connection

logger = logging.getLogger(__name__)

# Whoever tells has so long; then somebody else does, since it may have died before the mail left.
LEASE = timedelta(minutes=5)
LONGEST_SUBJECT = 150


def tell_broken(connection: Connection, now: datetime) -> bool:
    """Tell an account's owner that it has to be connected again. False if the mail did not leave;
    then it is tried again, as it is by somebody else when this process dies before it left.

    Raises Conflict when somebody else tells it.
    """
    connections.begin_telling(connection, now + LEASE)
    ids = {"user_id": connection.user_id, "connection": connection.key}
    owner = User.objects.filter(pk=connection.user_id).first()
    if owner is None or not owner.email:
        logger.warning("nobody to tell", extra=ids)
        connections.note_told(connection, now)
        return True
    source = PROVIDERS[connection.provider].LABEL
    context = {
        "source": source,
        "account": connection.account_name or connection.account_id,
        "reason": connection.broken,
        "address": settings.SITE_URL + reverse("connections"),
    }
    subject = " ".join(f"{source} needs you: connect {context['account']} again".split())
    subject = subject[:LONGEST_SUBJECT]
    text = render_to_string("scheduling/mail/broken.txt", context)
    try:
        send_mail(subject, text, None, [owner.email])
    except (SMTPException, OSError):
        logger.exception("mail not sent", extra=ids)
        return False
    logger.info("told that an account broke", extra=ids)
    connections.note_told(connection, now)
    return True
