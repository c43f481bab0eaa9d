"""Who may use the server of `kubenexus web`: the browser that opened the printed address, and nothing else.

The server listens on the loopback address, which every program of the machine reaches, and every web site through its
visitor's browser. So each request is checked:

    Host           a name of the loopback address, with our port: a site whose own name leads here (DNS rebinding) fails
    Origin         our own, if there is one; and Sec-Fetch-Site is not another site
    Authorization  the random token of this start. It is in the fragment of the printed address, which browsers do not
                   send and do not log. Only the files of the page need none
"""

import hmac
from typing import Final, NamedTuple

from aiohttp import web

from kubenexus.app.http.api.request_problem import RequestProblem
from kubenexus.web.page_routes import ROOT, SETTINGS

HOSTS: Final = ("127.0.0.1", "localhost", "[::1]")
MISDIRECTED: Final = RequestProblem(421, "Misdirected", "this server answers on the loopback address alone")
OTHER_ORIGIN: Final = RequestProblem(403, "Forbidden", "requests of other sites are refused")
NO_TOKEN: Final = RequestProblem(
    401, "Unauthorized", "open the address that `kubenexus web` printed: it contains the token"
)


class LocalGuard(NamedTuple):
    """The checks. `reports` is the path below which reports are served; it contains a secret of its own."""

    token: str
    port: int
    reports: str

    def check(self, request: web.Request) -> None:
        """Raises RequestProblem unless the request may be answered."""
        allowed = {f"{name}:{self.port}" for name in HOSTS}
        if request.headers.getall("Host", []) not in [[each] for each in allowed]:
            raise MISDIRECTED
        origin = request.headers.get("Origin")
        if origin is not None and origin not in {f"http://{each}" for each in allowed}:
            raise OTHER_ORIGIN
        if request.headers.get("Sec-Fetch-Site", "none") not in ("same-origin", "none"):
            raise OTHER_ORIGIN
        if not self._is_public(request.path) and not self._has_token(request):
            raise NO_TOKEN

    def _is_public(self, path: str) -> bool:
        return path in ("/", "/web") or (path.startswith((ROOT, self.reports)) and path != SETTINGS)

    def _has_token(self, request: web.Request) -> bool:
        scheme, _, given = request.headers.get("Authorization", "").partition(" ")
        return scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), self.token.encode())
