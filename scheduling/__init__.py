"""When things happen: the weekly plan, the tick, writing, publishing."""

import slothpost_site  # noqa: F401  empties the zone search path before weekly opens a zone
