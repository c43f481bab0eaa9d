"""Protocols and data between a `Reflector` and its callers: what to watch, the client, the handler, the timing."""

from typing import Any, Protocol

import msgspec

from kubenexus.api.codec import HasMetadata, Unreadable
from kubenexus.client.calls import Api
from kubenexus.client.kinds import ApiResource
from kubenexus.client.watch_events import WatchEvent, Work


class LineStream(Protocol):
    """An answer without end; see `http_connection.ResponseStream`."""

    async def batch(self, most: int = ...) -> list[bytes]: ...

    def close(self) -> None: ...


class WatchClient(Api, Protocol):
    """An `Api` that can also watch: the client, or the embedded cluster."""

    async def stream(self, path: str, *, timeout: float = ...) -> LineStream: ...


class WatchHandler(Protocol):
    """Handles lists and events. Called by one reflector, one call at a time; must return soon."""

    def list_started(self) -> None:
        """Begins a list. If one was under way it broke off, and its pages are void."""

    def list_page(self, items: list[Any], unreadable: tuple[Unreadable, ...]) -> None:
        """Handles a part of the list."""

    def list_finished(self) -> None:
        """Ends the list: objects that were not in it since `list_started` are gone."""

    def events(self, changes: list[WatchEvent]) -> None:
        """Handles events of the watch, in order."""

    def problem_changed(self, trouble: "WatchProblem") -> None:
        """Handles a new problem, or (no text) the end of one. Called once, not again for each try."""


class WatchProblem(msgspec.Struct, frozen=True):
    """Why a kind is not watched. `code` is the server's, 0 without an answer; 404: the kind is not served. `serious`: a
    list failed, or a watch several times in a row, so unknown objects may exist."""

    resource: ApiResource
    code: int = 0
    text: str = ""
    serious: bool = False


def _one_unit(thing: Any) -> int:
    return 1


class WatchTarget(msgspec.Struct, frozen=True):
    """What is watched: a kind, the type it is decoded as, and a field selector ("" for all objects).

    `fallback_resources` are other versions of the kind, tried in turn where the server does not serve the first. `work`
    estimates how much work the handler has with an object, decoded or Unreadable: what it gets at once is at most
    `watch_events.MAX_WORK`, or one object.
    """

    resource: ApiResource
    type: type[HasMetadata]
    fields: str = ""
    fallback_resources: tuple[ApiResource, ...] = ()
    work: Work = _one_unit


class WatchTiming(msgspec.Struct, frozen=True):
    """Times in seconds, and the number of objects on a page."""

    page: int = 500
    list_page: float = 60.0
    shortest: float = 300.0  # a watch lasts between this
    longest: float = 600.0  # and this
    grace: float = 30.0  # after its requested end, before a watch is dropped
    silence: float = 180.0  # without a line, once bookmarks have come, which come every minute
    short: float = 1.0  # a watch that ends sooner than this without a line is a failure
    backoff: float = 0.5
    longest_backoff: float = 10.0
    retried: float = 5.0  # between two pauses that end early because the server answers other reflectors
    absent: float = 60.0  # before a kind that is not served is listed again
    forbidden: float = 30.0  # before a kind that answers 403 is listed or watched again
    forbidden_doubted: float = 60.0  # in which a 403 on a kind that was listed before gets the ordinary backoff


class WatchGroup(Protocol):
    """The reflectors of one server. A reflector reports to it what it learns about the server."""

    def server_answers(self) -> None:
        """Called when the server answers again after a failure, so that other reflectors can `retry`, and when all
        events that were missed have been handled."""
        ...

    def version_expired(self, version: str) -> None:
        """Called when the server does not continue from the reflector's version (""), and with the version of a list
        that is earlier than the one before: the server's store was restored."""
        ...


class SingleWatch:
    """The group of a reflector that is alone."""

    def server_answers(self) -> None:
        pass

    def version_expired(self, version: str) -> None:
        pass
