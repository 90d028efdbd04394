"""Every service at which an account can be connected: sources, and the outlets that need one."""

from integrations.accounts import Consenting, Provider
from integrations.sources import SOURCES, github, vercel

PROVIDERS: dict[str, Provider] = {**SOURCES}

# Those among them that ask the person on a page of their own.
CONSENTING: dict[str, Consenting] = {module.NAME: module for module in (github, vercel)}
