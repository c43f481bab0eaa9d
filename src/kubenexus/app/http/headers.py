"""Headers of every answer."""

from typing import Final

HEADERS: Final = {"Cache-Control": "no-cache, private", "X-Content-Type-Options": "nosniff"}
