"""The words between a reflector and the rooms around it: what to follow, whom to ask, whom to tell."""

from typing import Any, Protocol

import msgspec

from kubenexus.api.codec import HasMetadata, Unreadable
from kubenexus.client.calls import Api
from kubenexus.client.kinds import ApiResource
from kubenexus.client.watch_events import WatchEvent


class LineStream(Protocol):
    """An answer without end; see `wire.ResponseStream`."""

    async def batch(self, most: int = ...) -> list[bytes]: ...

    def close(self) -> None: ...


class WatchClient(Api, Protocol):
    """Who can list and watch: the client, or the embedded cluster."""

    async def stream(self, path: str, *, timeout: float = ...) -> LineStream: ...


class WatchHandler(Protocol):
    """Who wants to know. Called by one reflector, never while another call of it is under way; must return soon."""

    def list_started(self) -> None:
        """A list begins. If one was under way, forget how far it came: it broke off."""

    def list_page(self, items: list[Any], unreadable: tuple[Unreadable, ...]) -> None:
        """A page of it."""

    def list_finished(self) -> None:
        """The list is complete: whatever was not in it since `list_started` is gone."""

    def events(self, changes: list[WatchEvent]) -> None:
        """What happened since, in order, as many as there were."""

    def problem_changed(self, trouble: "WatchProblem") -> None:
        """Something is wrong, or (no text) no longer. Told once, not again for each try."""


class WatchProblem(msgspec.Struct, frozen=True):
    """Why we do not hear of a kind. `code` is the server's, 0 without an answer; 404: the kind is not served.
    `serious`: a list failed, or a watch several times in a row, so objects may exist that we do not know."""

    resource: ApiResource
    code: int = 0
    text: str = ""
    serious: bool = False


class WatchTarget(msgspec.Struct, frozen=True):
    """What is followed: a kind, the type it is read as, and which of its objects (a field selector, "" for all).

    `fallback_resources` are other forms of the kind, tried in turn where the server does not know the first.
    """

    resource: ApiResource
    type: type[HasMetadata]
    fields: str = ""
    fallback_resources: tuple[ApiResource, ...] = ()


class WatchTiming(msgspec.Struct, frozen=True):
    """All in seconds, but for the objects on a page."""

    page: int = 500
    list_page: float = 60.0
    shortest: float = 300.0  # a watch, between this
    longest: float = 600.0  # and this
    grace: float = 30.0  # beyond what we asked for, before a watch that does not end is dropped
    silence: float = 180.0  # once bookmarks have come, which they do every minute
    short: float = 1.0  # a watch without a word that ends sooner than this is a failure, any other is well
    backoff: float = 0.5
    longest_backoff: float = 10.0
    retried: float = 5.0  # between two waits that are cut short because the server answers others
    absent: float = 60.0  # before a kind that is not served is looked for again
    forbidden: float = 30.0
