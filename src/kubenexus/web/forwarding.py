"""Forwards questions to the live API of a scheduler, with the credentials of the user's kubeconfig."""

import asyncio
from typing import Final
from urllib.parse import urlencode

from aiohttp import web

from kubenexus.app.http.api import paths
from kubenexus.app.http.api.request_problem import RequestProblem
from kubenexus.app.http.api.routes import MAX_FOLLOWERS, WRITE_SECONDS, read_body
from kubenexus.app.http.api.state_copies import BUSY
from kubenexus.app.http.headers import HEADERS
from kubenexus.base.errors import KubeNexusError
from kubenexus.client.calls import ApiError, Call
from kubenexus.client.transport import ApiClient

SECONDS: Final = 30.0  # for an answer


class ForwardingRoutes:
    """The paths of the live API. Nothing else is forwarded: the client's credentials could do more."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self._followers = 0

    def add_to(self, application: web.Application) -> None:
        for path in paths.PATHS:
            if path == paths.WHATIF:
                application.router.add_post(path, self._post)
            else:
                application.router.add_get(path, self._get)

    async def _get(self, request: web.Request) -> web.StreamResponse:
        if request.path == paths.DECISIONS and "follow" in request.query:
            return await self._follow(request)
        return await self._sent(Call("GET", _target(request)))

    async def _post(self, request: web.Request) -> web.StreamResponse:
        return await self._sent(Call("POST", _target(request), await read_body(request)))

    async def _sent(self, call: Call) -> web.Response:
        try:
            body = await self._client.send(call, timeout=SECONDS)
        except KubeNexusError as error:
            raise _problem(error) from None
        return web.Response(body=body, headers=HEADERS | {"Content-Type": "application/json"})

    async def _follow(self, request: web.Request) -> web.StreamResponse:
        """Passes the data of events on. Ends when the scheduler ends the stream, or the browser does not read."""
        if self._followers >= MAX_FOLLOWERS:
            raise BUSY
        self._followers += 1
        try:
            stream = await self._client.stream(_target(request))
        except KubeNexusError as error:
            self._followers -= 1
            raise _problem(error) from None
        response = web.StreamResponse(headers=HEADERS | {"Content-Type": "text/event-stream"})
        try:
            await response.prepare(request)
            while lines := await stream.batch():
                events = b"".join(line.rstrip() + b"\n\n" for line in lines if line.startswith((b"data: ", b":")))
                if events:
                    async with asyncio.timeout(WRITE_SECONDS):
                        await response.write(events)
        except (ConnectionError, TimeoutError, KubeNexusError):
            if request.transport is not None:
                request.transport.abort()
        finally:
            self._followers -= 1
            stream.close()
        return response


def _target(request: web.Request) -> str:
    """Returns the path and the query, encoded again: no character of a request gets into the next one as it is."""
    query = urlencode(list(request.query.items()))
    return f"{request.path}?{query}" if query else request.path


def _problem(error: KubeNexusError) -> RequestProblem:
    if isinstance(error, ApiError):
        return RequestProblem(error.code, error.reason, error.message or error.reason)
    return RequestProblem(502, "BadGateway", f"the scheduler does not answer: {error}")
