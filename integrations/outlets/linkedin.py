"""LinkedIn: 3,000 characters of the text as it is read, before it is escaped for the API.

LinkedIn does not say what a character is; here it is a Unicode code point.
"""

from integrations.outlets.base import Outlet

OUTLET = Outlet(name="linkedin", label="LinkedIn", unit="characters", limit=3000, count=len)
