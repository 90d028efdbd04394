"""The door for gunicorn."""

import logging
import os

from django.core.management.base import BaseCommand
from django.core.wsgi import get_wsgi_application

from slothpost_site import checks

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "slothpost_site.settings")
application = get_wsgi_application()

# gunicorn runs no checks: an unsafe setting ends the start here, in sentences.
BaseCommand().check()
logging.getLogger(__name__).info("web server starts", extra={"tzdata": checks.tzdata_version()})
