"""The routes of the live API: reads the request, checks what the reader may see, and answers from a copy.

    GET   /api/v1/explain?namespace=&name=[&kind=]    get pods in the namespace; nodes are named with list nodes
    POST  /api/v1/whatif?namespace=                   list nodes, and list pods in the namespace
    GET   /api/v1/jobs, /queues, /gangs [?namespace=] list pods in the namespace, or in all
    GET   /api/v1/eta [?namespace=][&name=][&kind=]   list pods in the namespace, or in all
    GET   /api/v1/nodes, /devices                     list nodes
    GET   /api/v1/map [?namespace=]                   list nodes, and list pods in the namespace, or in all
    GET   /api/v1/decisions [?namespace=][&follow=1]  list pods in the namespace, or in all

What objects are meant is in the query, never in the path, so there is one path for each authorization rule.
"""

import asyncio
import gzip
import re
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, Generic, TypeVar

import msgspec
from aiohttp import web

from kubenexus.app.http.api import paths
from kubenexus.app.http.api.decision_log import DecisionLog, documents
from kubenexus.app.http.api.documents import DecisionPage, WhatIfRequest
from kubenexus.app.http.api.pages import MAX_ITEMS, PageQuery
from kubenexus.app.http.api.questions import EtaQuery, ExplainQuery, LiveQuestions, ReaderRights, WhatIfQuery
from kubenexus.app.http.api.readers import LIST_ALL_PODS, LIST_NODES, Reader
from kubenexus.app.http.api.request_problem import RequestProblem, bad_request
from kubenexus.app.http.api.state_copies import BUSY, StateCopies
from kubenexus.app.http.api.waiting_questions import Question
from kubenexus.app.http.authorization import ResourceRight
from kubenexus.app.http.headers import HEADERS
from kubenexus.base.clock import Clock

MAX_BODY: Final = 1 << 20  # bytes of a what-if
BODY_SECONDS: Final = 10.0  # for the whole body
PACKED_FROM: Final = 1 << 14  # bytes of an answer
MAX_FOLLOWERS: Final = 64
MAX_FOLLOWERS_OF_USER: Final = 8
MAX_BEHIND: Final = 512  # decisions that are sent at a time
WRITE_SECONDS: Final = 5.0  # that a follower may take to read what is sent
FOLLOW_SECONDS: Final = 600.0
SILENCE_SECONDS: Final = 15.0  # after which a comment shows that the connection lives
_GZIP: Final = b"\x1f\x8b"  # no JSON begins so
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_KIND: Final = re.compile(r"[A-Za-z][A-Za-z0-9.]{0,100}")

Readers = Callable[[web.Request], Reader]
Unready = Callable[[], Sequence[str]]  # what has not been listed yet
State = TypeVar("State")


class ApiRoutes(Generic[State]):
    """The handlers. `reader` returns the sender of a request; the server has authorized its path already."""

    def __init__(  # noqa: PLR0917 - its collaborators
        self,
        state: State,
        questions: LiveQuestions[State],
        decisions: DecisionLog,
        copies: StateCopies,
        clock: Clock,
        reader: Readers,
        unready: Unready = tuple,
    ) -> None:
        self._state, self._questions, self._decisions = state, questions, decisions
        self._unready = unready
        self._copies, self._clock, self._reader = copies, clock, reader
        self._followers: Counter[str] = Counter()  # by user

    def add_to(self, application: web.Application) -> None:
        router, questions = application.router, self._questions
        router.add_get(paths.EXPLAIN, self._explain)
        router.add_post(paths.WHATIF, self._whatif)
        router.add_get(paths.ETA, self._eta)
        router.add_get(paths.JOBS, partial(self._of_namespace, questions.jobs))
        router.add_get(paths.QUEUES, partial(self._of_namespace, questions.queues))
        router.add_get(paths.GANGS, self._gangs)
        router.add_get(paths.MAP, self._map)
        router.add_get(paths.NODES, self._nodes)
        router.add_get(paths.DEVICES, self._devices)
        router.add_get(paths.DECISIONS, self._get_decisions)

    # --- answers from a copy --------------------------------------------------------------------------------------

    async def _explain(self, request: web.Request) -> web.Response:
        said = _parameters(request, "namespace", "name", "kind", "nodes")
        namespace, name, kind = _name(said, "namespace"), _name(said, "name"), _kind(said)
        reader = self._reader(request)
        await reader.require(ResourceRight("get", "pods", namespace))
        rights = ReaderRights(await reader.may(LIST_NODES), await reader.may(LIST_ALL_PODS))
        query = ExplainQuery(namespace, name, kind, _number(said, "nodes", 5, 50), rights)
        return await self._answer(
            request, lambda: self._questions.explain(self._state, query, self._clock.now()), query
        )

    async def _whatif(self, request: web.Request) -> web.Response:
        said = _parameters(request, "namespace")
        namespace, reader = _name(said, "namespace"), self._reader(request)
        await reader.require(LIST_NODES)
        await reader.scope(namespace)
        rights = ReaderRights(nodes=True, all_pods=await reader.may(LIST_ALL_PODS))
        try:
            wanted = msgspec.json.decode(await read_body(request), type=WhatIfRequest)
        except msgspec.DecodeError as error:
            raise bad_request(f"body: {error}") from None
        query = WhatIfQuery(namespace, wanted, rights)
        return await self._answer(request, lambda: self._questions.whatif(self._state, query, self._clock.now()))

    async def _eta(self, request: web.Request) -> web.Response:
        """Jobs of other namespaces count, and have no name in the answer."""
        said, reader = _parameters(request, "namespace", "name", "kind", "limit", "continue"), self._reader(request)
        name, kind = _name(said, "name", optional=True), _kind(said)
        namespace = await reader.scope(_name(said, "namespace", optional=not name))
        page = PageQuery(namespace, said.get("continue", ""), _number(said, "limit", 100, MAX_ITEMS))
        query = EtaQuery(page, name, kind)
        return await self._answer(request, lambda: self._questions.eta(self._state, query, self._clock.now()), query)

    async def _of_namespace(self, page: Callable[[State, PageQuery], bytes], request: web.Request) -> web.Response:
        said, reader = _parameters(request, "namespace", "limit", "continue"), self._reader(request)
        namespace = await reader.scope(_name(said, "namespace", optional=True))
        query = PageQuery(namespace, said.get("continue", ""), _number(said, "limit", 100, MAX_ITEMS))
        return await self._answer(request, lambda: page(self._state, query), (page, query), changes=False)

    async def _gangs(self, request: web.Request) -> web.Response:
        """Domains are labels of nodes: they are left out for a reader who may not list these."""
        said, reader = _parameters(request, "namespace", "name", "limit", "continue"), self._reader(request)
        namespace, name = _name(said, "namespace", optional=True), said.get("name", "")
        await reader.scope(namespace)
        rights = ReaderRights(nodes=await reader.may(LIST_NODES))
        query = PageQuery(namespace, said.get("continue", ""), _number(said, "limit", 100, MAX_ITEMS))
        key = (paths.GANGS, query, name, rights)
        return await self._answer(
            request, lambda: self._questions.gangs(self._state, query, name, rights), key, changes=False
        )

    async def _map(self, request: web.Request) -> web.Response:
        """Of jobs in other namespaces the map only shows that something is used."""
        said, reader = _parameters(request, "namespace"), self._reader(request)
        await reader.require(LIST_NODES)
        namespace = await reader.scope(_name(said, "namespace", optional=True))
        key = (paths.MAP, namespace)
        return await self._answer(request, lambda: self._questions.map(self._state, namespace), key, changes=False)

    async def _nodes(self, request: web.Request) -> web.Response:
        said, reader = _parameters(request, "limit", "continue"), self._reader(request)
        await reader.require(LIST_NODES)
        query = PageQuery("", said.get("continue", ""), _number(said, "limit", 100, MAX_ITEMS))
        return await self._answer(
            request, lambda: self._questions.nodes(self._state, query), (paths.NODES, query), changes=False
        )

    async def _devices(self, request: web.Request) -> web.Response:
        """Devices name the pods that hold them, so the reader must be allowed to list these."""
        said, reader = _parameters(request, "node", "limit", "continue"), self._reader(request)
        await reader.require(LIST_NODES)
        await reader.require(LIST_ALL_PODS)
        query = PageQuery("", said.get("continue", ""), _number(said, "limit", 100, MAX_ITEMS))
        node = _name(said, "node", optional=True)
        key = (paths.DEVICES, query, node)
        return await self._answer(
            request, lambda: self._questions.devices(self._state, query, node), key, changes=False
        )

    async def _answer(
        self, request: web.Request, question: Question, key: Hashable = None, *, changes: bool = True
    ) -> web.Response:
        missing = self._unready()
        if missing:
            raise RequestProblem(503, "ServiceUnavailable", f"not listed yet: {', '.join(missing)}")
        if _takes_gzip(request):
            question, key = partial(_packed, question), None if key is None else (key, "gzip")
        return _json(await self._copies.answer(question, key, user=self._reader(request).share, changes=changes))

    # --- decisions ------------------------------------------------------------------------------------------------

    async def _get_decisions(self, request: web.Request) -> web.StreamResponse:
        said, reader = _parameters(request, "namespace", "limit", "continue", "follow"), self._reader(request)
        namespace = await reader.scope(_name(said, "namespace", optional=True))
        # Without a position: what follows from now on, or the last ones that are kept.
        after = _number(said, "continue", self._decisions.last if "follow" in said else 0, 1 << 62)
        if "follow" in said:
            return await self._follow(request, reader.share, namespace, after)
        most = _number(said, "limit", 100, MAX_ITEMS)
        some = self._decisions.after(after, most)
        last = some[-1].number if some and some[-1].number < self._decisions.last else 0
        page = DecisionPage(tuple(documents(some, namespace)), str(last) if last else "")
        return _json(msgspec.json.encode(page))

    async def _follow(self, request: web.Request, user: str, namespace: str, after: int) -> web.StreamResponse:
        """Sends decisions as server-sent events. Ends when the client closes the connection or is too slow, and after
        some minutes: the client connects again, and its rights are checked again."""
        if self._followers.total() >= MAX_FOLLOWERS or self._followers[user] >= MAX_FOLLOWERS_OF_USER:
            raise BUSY
        response = web.StreamResponse(headers=HEADERS | {"Content-Type": "text/event-stream"})
        self._followers[user] += 1
        try:
            await response.prepare(request)
            with suppress(TimeoutError):
                async with asyncio.timeout(FOLLOW_SECONDS):
                    await self._send(response, namespace, after)
        except ConnectionError:
            if request.transport is not None:
                request.transport.abort()  # a client that does not read
        finally:
            self._followers[user] -= 1
            self._followers += Counter()  # forgets users without followers
        return response

    async def _send(self, response: web.StreamResponse, namespace: str, after: int) -> None:
        """Sends decisions until the process ends. Raises ConnectionError if the client does not read them."""
        while not self._decisions.closed:
            some = self._decisions.after(after, MAX_BEHIND)
            after = some[-1].number if some else after
            events = [_event(each.number, msgspec.json.encode(each)) for each in documents(some, namespace)]
            if not some:
                with suppress(TimeoutError):
                    async with asyncio.timeout(SILENCE_SECONDS):
                        await self._decisions.wait(after)
                        continue
                events = [b": nothing was decided\n\n"]
            if events:
                try:
                    async with asyncio.timeout(WRITE_SECONDS):
                        await response.write(b"".join(events))
                except TimeoutError:
                    raise ConnectionError from None


def _json(body: bytes) -> web.Response:
    more = {"Content-Encoding": "gzip"} if body.startswith(_GZIP) else {}
    return web.Response(body=body, headers=HEADERS | {"Content-Type": "application/json"} | more)


def _takes_gzip(request: web.Request) -> bool:
    return "gzip" in {each.strip() for each in request.headers.get("Accept-Encoding", "").split(",")}


def _packed(question: Question) -> bytes:
    """Returns the answer, a large one compressed. Called in a copy: the loop would encrypt and send the map of 5,000
    nodes in 2.4 ms, and does so in 0.4 ms compressed."""
    body = question()
    return gzip.compress(body, 1, mtime=0) if len(body) > PACKED_FROM else body


def _event(number: int, data: bytes) -> bytes:
    return b"id: %d\nevent: decision\ndata: %b\n\n" % (number, data)


def _parameters(request: web.Request, *known: str) -> Mapping[str, str]:
    """Returns the parameters of the query. Raises RequestProblem for one that is unknown or given twice."""
    said: dict[str, str] = {}
    for name, value in request.query.items():
        if name not in known or name in said:
            raise bad_request(f"parameters are {', '.join(known)}, each once")
        said[name] = value
    return said


def _name(said: Mapping[str, str], parameter: str, *, optional: bool = False) -> str:
    """Returns the name of an object. Raises RequestProblem if no object can have it."""
    found = said.get(parameter, "")
    if (found or not optional) and not _NAME.fullmatch(found):
        raise bad_request(f"{parameter}: not the name of an object")
    return found


def _kind(said: Mapping[str, str]) -> str:
    found = said.get("kind", "")
    if found and not _KIND.fullmatch(found):
        raise bad_request("kind: not the name of a kind")
    return found


def _number(said: Mapping[str, str], parameter: str, default: int, most: int) -> int:
    text = said.get(parameter, "")
    if not text:
        return default
    if not text.isascii() or not text.isdecimal() or len(text) > 19 or not 0 < int(text) <= most:
        raise bad_request(f"{parameter}: a number from 1 to {most}")
    return int(text)


async def read_body(request: web.Request) -> bytes:
    """Returns the body. Raises RequestProblem if it is too large or comes too slowly."""
    found = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in request.content.iter_any():
                found += chunk
                if len(found) > MAX_BODY:
                    raise RequestProblem(413, "RequestEntityTooLarge", f"the body has more than {MAX_BODY} bytes")
    except TimeoutError:
        raise RequestProblem(408, "Timeout", f"the body took longer than {BODY_SECONDS:g} seconds") from None
    return bytes(found)
