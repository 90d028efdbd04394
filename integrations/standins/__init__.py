"""The services of others on this machine, over real HTTP.

For tests, and for `make run`: whoever has no account can click through every way to connect one.
Each service is one file that keeps its contract: who may ask, pages, limits, ETags, errors.
"""

from integrations.standins import (
    app_store,
    bluesky,
    github,
    linkedin,
    mastodon,
    threads,
    vercel,
    webhook,
    x,
)

# Each has `add_to(standins, keys)`, `settings_for(standins)` and REAL_WHEN_SET: the setting that
# says that the real service is meant.
SERVICES = (github, vercel, app_store, x, threads, bluesky, mastodon, linkedin, webhook)
