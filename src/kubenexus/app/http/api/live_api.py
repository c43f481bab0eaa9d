"""The live API of one process: its questions, the last decisions, and the copies that answer."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from kubenexus.app.http.api.decision_log import DecisionLog
from kubenexus.app.http.api.paths import PATHS
from kubenexus.app.http.api.questions import LiveQuestions
from kubenexus.app.http.api.state_copies import StateCopies
from kubenexus.base.clock import Clock

if TYPE_CHECKING:
    from aiohttp import web

    from kubenexus.app.http.authorization import RequestAuthorizer
    from kubenexus.app.scheduler import Scheduler


class WebPage(Protocol):
    """A page whose files are served beside the API. `public` are its paths, which need no authorization."""

    public: tuple[str, ...]

    def add_to(self, application: "web.Application") -> None: ...


class LiveApi:
    """Made at the start of the process, before the web server is imported. The loop calls `decisions.add`. With `page`
    that page is served, too."""

    def __init__(self, questions: "LiveQuestions[Scheduler]", page: "Callable[[], WebPage] | None" = None) -> None:
        self._questions, self._page = questions, page
        self.decisions = DecisionLog()
        self.copies: StateCopies | None = None  # those of the server that was opened

    def open(
        self, scheduler: "Scheduler", clock: Clock, authorizer: "RequestAuthorizer | None"
    ) -> "tuple[Callable[[web.Application], None], Sequence[str]]":
        """Returns a function that adds the routes to a server, and their paths."""
        from kubenexus.app.http.api.routes import ApiRoutes
        from kubenexus.app.http.server import request_reader

        self.copies = StateCopies(clock, scheduler.silence)
        routes = ApiRoutes(
            scheduler,
            self._questions,
            self.decisions,
            self.copies,
            clock,
            lambda request: request_reader(request, authorizer),
            lambda: scheduler.watches.unsynced,
        )
        page = None if self._page is None else self._page()

        def add_to(application: "web.Application") -> None:
            routes.add_to(application)
            if page is not None:
                page.add_to(application)

        return add_to, PATHS if page is None else (*PATHS, *page.public)

    @property
    def public(self) -> tuple[str, ...]:
        """Paths that need no authorization: the files of the page."""
        return () if self._page is None else self._page().public

    async def close(self) -> None:
        self.decisions.close()
        if self.copies is not None:
            await self.copies.close()
