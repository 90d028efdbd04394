"""django-q2's `qcluster`, which leaves no ghosts."""

import ctypes
import logging
import os
import signal
import sys
from typing import Any

from django_q.management.commands import qcluster

from slothpost_site import checks

logger = logging.getLogger(__name__)

PR_SET_PDEATHSIG = 1  # prctl(2)


class Command(qcluster.Command):  # type: ignore[misc]  # django-q2 has no types
    def handle(self, *args: Any, **options: Any) -> None:
        logger.info("worker starts", extra={"tzdata": checks.tzdata_version()})
        if sys.platform == "linux":
            os.register_at_fork(after_in_child=_die_with_parent)
        super().handle(*args, **options)


def _die_with_parent() -> None:
    """Have the kernel kill this process when its parent dies.

    Killed by `kill -9`, django-q2's main process leaves children behind that go on ticking, with
    the old code, beside the cluster that is started next. (Two clusters at once do no harm to the
    data; elsewhere than on Linux they are left to that.)
    """
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
