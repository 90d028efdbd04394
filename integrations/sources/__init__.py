"""Where activity comes from. A new source is a module here and a line in the registry."""

from integrations.sources import app_store, github, vercel
from integrations.sources.base import Source

SOURCES: dict[str, Source] = {
    github.NAME: github,
    vercel.NAME: vercel,
    app_store.NAME: app_store,
}
