"""Serves the files of the page below `/web/`, with headers that keep it from loading anything else.

The files are public: they contain nothing about a cluster. What the page shows comes from the live API, with the token
of the reader.
"""

from typing import Any, Final

import msgspec
from aiohttp import web

from kubenexus import __version__
from kubenexus.web.assets import Asset, load_assets

ROOT: Final = "/web/"
SETTINGS: Final = f"{ROOT}settings.json"
# No inline script, no eval, no other host; and no text becomes markup (Trusted Types).
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; frame-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types 'none'"
)
PAGE_HEADERS: Final = {
    "Cache-Control": "no-cache",
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Report(msgspec.Struct, frozen=True):
    """A comparison that the simulator wrote, and where it is served."""

    title: str
    address: str


class PageSettings(msgspec.Struct, frozen=True, rename="camel"):
    """What the page has to know. `source` is `scheduler`, `cluster` or `file`; only a scheduler has decisions. `title`
    names the source. `namespace` is that of the kubeconfig's context. `asks_token`: the reader has to enter one."""

    source: str = "scheduler"
    title: str = ""
    namespace: str = ""
    asks_token: bool = True
    version: str = __version__
    reports: tuple[Report, ...] = ()


class PageRoutes:
    """The routes of the page. `public` are the paths that need no authorization."""

    public: tuple[str, ...] = ("/", "/web", f"{ROOT}*")

    def __init__(self, settings: PageSettings | None = None) -> None:
        self._assets = load_assets()
        self._settings = msgspec.json.encode(settings or PageSettings())

    def add_to(self, application: web.Application) -> None:
        """Adds the routes to a server."""
        router = application.router
        router.add_get("/", _to_page)
        router.add_get("/web", _to_page)
        router.add_get(ROOT, self._index)
        router.add_get(SETTINGS, self._get_settings)
        router.add_get(ROOT + "{name}", self._asset)

    async def _index(self, request: web.Request) -> web.Response:
        return _answer(request, self._assets["index.html"])

    async def _asset(self, request: web.Request) -> web.Response:
        asset = self._assets.get(request.match_info["name"])
        if asset is None:
            raise web.HTTPNotFound
        return _answer(request, asset)

    async def _get_settings(self, request: web.Request) -> web.Response:
        return web.Response(body=self._settings, headers=PAGE_HEADERS | {"Content-Type": "application/json"})


async def _to_page(request: web.Request) -> Any:
    return web.Response(status=307, headers=PAGE_HEADERS | {"Location": ROOT})


def _answer(request: web.Request, asset: Asset) -> web.Response:
    headers = PAGE_HEADERS | {"ETag": asset.etag}
    if request.headers.get("If-None-Match") == asset.etag:
        return web.Response(status=304, headers=headers)
    return web.Response(body=asset.body, headers=headers | {"Content-Type": asset.content_type})
