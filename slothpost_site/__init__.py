"""Ground: settings, the DynamoDB base, paging, checks, and the composition of the apps."""

import zoneinfo

# Time zones come from the pinned tzdata package, never from the machine's own files: the two
# disagree for a dozen zones at a time, and one hour off is a post at the wrong time.
zoneinfo.reset_tzpath(())
