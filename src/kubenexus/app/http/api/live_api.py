"""The live API of one process: its questions, the last decisions, and the copies that answer."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from kubenexus.app.http.api.decision_log import DecisionLog
from kubenexus.app.http.api.paths import PATHS
from kubenexus.app.http.api.questions import LiveQuestions
from kubenexus.app.http.api.state_copies import StateCopies
from kubenexus.base.clock import Clock

if TYPE_CHECKING:
    from aiohttp import web

    from kubenexus.app.http.authorization import RequestAuthorizer
    from kubenexus.app.scheduler import Scheduler


class LiveApi:
    """Made at the start of the process, before the web server is imported. The loop calls `decisions.add`."""

    def __init__(self, questions: "LiveQuestions[Scheduler]") -> None:
        self._questions = questions
        self.decisions = DecisionLog()
        self._copies: StateCopies | None = None

    def open(
        self, scheduler: "Scheduler", clock: Clock, authorizer: "RequestAuthorizer | None"
    ) -> "tuple[Callable[[web.Application], None], Sequence[str]]":
        """Returns a function that adds the routes to a server, and their paths."""
        from kubenexus.app.http.api.routes import ApiRoutes
        from kubenexus.app.http.server import request_reader

        self._copies = StateCopies(clock, scheduler.silence)
        routes = ApiRoutes(
            scheduler,
            self._questions,
            self.decisions,
            self._copies,
            clock,
            lambda request: request_reader(request, authorizer),
            lambda: scheduler.watches.unsynced,
        )
        return routes.add_to, PATHS

    async def close(self) -> None:
        self.decisions.close()
        if self._copies is not None:
            await self._copies.close()
