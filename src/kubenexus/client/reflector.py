"""`Reflector`: a list that continues as a watch, for the life of the process.

    list ──▶ watch ──▶ watch ──▶ ...      the server ends a watch every few minutes; the next begins where it ended
      ▲        │
      └────────┘ 410: too much has happened since; or the server went back to an earlier state. Only a list helps

The handler gets complete and ordered data: after `list_finished` the state of one moment, then each change since. A
failure delays events, but drops none.

A server whose store was restored from a backup continues from an earlier resourceVersion. It accepts a watch from a
version that it has yet to reach, and sends nothing until then. So after a watch that broke or sent nothing the
reflector requests one object "not older than" its version, which such a server refuses: 504, too large.
"""

import asyncio
import contextlib
import random
from typing import Any

from kubenexus.api.codec import ListPage, decode_list
from kubenexus.base.clock import Clock, Sleep
from kubenexus.base.errors import Malformed
from kubenexus.client.calls import ApiError, Uncertain, Unreachable
from kubenexus.client.kinds import ApiResource
from kubenexus.client.list_pages import ListPages
from kubenexus.client.verbs import list_call, reaching, watch_path
from kubenexus.client.version_waiters import VersionWaiters
from kubenexus.client.watch_backoff import WatchBackoff, may_retry
from kubenexus.client.watch_events import (
    MAX_WORK,
    WatchBatch,
    before,
    decode_watch_lines,
    is_version_too_large,
    portions,
    split_batch,
    version_at_least,
    version_too_large,
)
from kubenexus.client.watch_protocols import (
    LineStream,
    SingleWatch,
    WatchClient,
    WatchGroup,
    WatchHandler,
    WatchProblem,
    WatchTarget,
    WatchTiming,
)

_MAX_LINES = 256  # lines in one batch: a few milliseconds of work, then the event loop continues
_FAILURES = 3  # of a watch in a row, before objects count as unknown
_DOUBT = 5  # answers in a row that a known kind is not served, before the reflector reports it as gone


class Reflector:
    """Lists and watches one kind. `app` makes one for each kind and runs it as a task."""

    def __init__(
        self,
        client: WatchClient,
        target: WatchTarget,
        handler: WatchHandler,
        *,
        clock: Clock,
        rng: random.Random,
        timing: WatchTiming | None = None,
        sleep: Sleep = asyncio.sleep,
        group: WatchGroup | None = None,
    ) -> None:
        self._client, self._handler, self._kind, self._fields = client, handler, target.type, target.fields
        self._work = target.work
        self._forms, self._form = (target.resource, *target.fallback_resources), 0
        self._clock, self._rng, self._sleep = clock, rng, sleep
        self._timing = timing = timing or WatchTiming()
        self._backoff = WatchBackoff(rng, timing, clock, sleep)
        self._begun, self._wanted = 0, 1  # lists
        self._list_pages = ListPages(client, target, timing)
        self._stream: LineStream | None = None
        self._group, self._failing = group or SingleWatch(), False
        self._moment = ""  # the server's version when it answered again
        self._waiters = VersionWaiters()
        self._reported_problem: WatchProblem | None = None
        self._latest = ""  # the version of the last list or watch, kept while a new list is under way
        self._unsure = False  # the last watch broke or sent nothing: the server may have been restored from a backup
        # For readiness, metrics and the scheduling loop; only the reflector writes them.
        self.lost_since: float | None = None  # since when objects may be outdated; None: they are not, or hardly
        self.version = ""  # of the last event, "" if a list is needed
        self.synced = False  # one list has been complete, or there is nothing to list
        self.served = True  # the server knows the kind
        self.watching = False  # a watch is open
        self.last_event_at = 0.0  # when the server last sent something of this kind
        self.last_error = ""  # "" while there is none
        self.restarts = 0  # lists and watches that failed
        self.rewinds = 0  # lists of an earlier state than the one before: the server's store was restored

    @property
    def resource(self) -> ApiResource:
        """The version of the kind that is watched now."""
        return self._forms[self._form]

    @property
    def wanted(self) -> ApiResource:
        """The preferred version of the kind, even if the server serves another."""
        return self._forms[0]

    @property
    def missing(self) -> str:
        """Why objects of the kind may be unknown or outdated; "" if they are not, or the kind is not served."""
        if self._reported_problem is not None:
            return "" if self._reported_problem.code == 404 and not self.served else self._reported_problem.text
        return "" if self.synced else "not listed yet"

    @property
    def _serious(self) -> bool:
        """Whether a failure now means that objects may be unknown: most watches that break continue at once."""
        return not self.version or self._backoff.failures >= _FAILURES

    async def run(self) -> None:
        """Runs until cancelled, or until the handler raises."""
        while True:
            await self.step()

    async def step(self) -> None:
        """Runs one list, or one watch until it ends; after a failure waits."""
        try:
            if not self.version or self._begun < self._wanted:
                await self._list()
            else:
                await self._reach()
                if self._begun >= self._wanted:  # else a list was wanted meanwhile
                    await self._watch()
        except ApiError as error:
            self._unsure = self._failing = True
            await self._backoff.pause(self._refused(error), may_retry=may_retry(error))
        except (Unreachable, Uncertain, Malformed) as error:
            self._unsure = self._failing = True
            self._backoff.not_forbidden()
            trouble = WatchProblem(self.resource, 0, str(error), serious=self._serious)
            await self._backoff.pause(self._failed(trouble), may_retry=True)

    def relist(self) -> None:
        """Ends the watch or pause and lists again. For callers that doubt the state."""
        self._wanted = self._begun + 1
        self._backoff.interrupt()
        if self._stream is not None:
            self._stream.close()

    def unlist(self, problem: str) -> None:
        """Counts the kind as not listed until a new list is complete. For optional kinds that do not answer when their
        objects have to be current."""
        self.synced = False
        self._note(WatchProblem(self.resource, 0, problem, serious=True))
        self.relist()

    def doubt(self, version: str) -> None:
        """Counts objects as outdated until the server has confirmed them: it no longer continues another kind's watch.
        A `version` earlier than this reflector's is that of a restored store, so that only a list helps."""
        rewound = before(version, self._latest)
        if self.synced and self.served and (rewound or not self.watching):
            self._lose()
        if rewound:
            self.relist()

    def retry(self) -> None:
        """Ends a pause after a call without an answer, or with a 401 or 403, since the server answers other reflectors.
        Not twice within seconds."""
        self._backoff.retry()

    async def wait_until_current(self, *, patience: float = 0.5) -> None:
        """Waits until the handler has all events from before this call. For the first bind after a start or a change of
        leader. Reads the server's version; if no event reaches that version soon, lists again.

        Raises what the call raises; has no timeout of its own while the server is away.
        """
        begun, version = self._begun, self.version
        try:
            raw = await self._client.send(list_call(self.resource, limit=1))
        except ApiError as error:
            if error.code == 404:
                return
            raise
        moment = decode_list(raw, self._kind).resource_version
        rewound = before(moment, version)
        done = self._waiters.add("" if rewound else moment, begun)  # "" is never reached: a list is needed
        if rewound:
            self.relist()
        self._waiters.reached(self.version)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await asyncio.shield(done)
        if not done.done():
            self.relist()
        await done

    # A list.

    async def _list(self) -> None:
        self._begun += 1
        number, first, version = self._begun, True, ""
        self.version = ""
        async with contextlib.aclosing(self._list_pages.turn(self.resource)) as pages:
            async for portion in pages:
                if first:
                    self._begin_list(portion.resource_version)
                await self._hand_over_page(portion)
                first, version = False, portion.resource_version
        if not version:
            raise Malformed("has no resourceVersion", field="metadata", subject=f"list of {self.resource}")
        self._complete(version, number)

    def _begin_list(self, version: str) -> None:
        """Reports a restored store before the first of its objects are handled."""
        if before(version, self._latest):
            self.rewinds += 1
            text = f"the server went back from resourceVersion {self._latest} to {version}; listed again"
            self._note(WatchProblem(self.resource, 0, text))
            self._latest = version
            self._group.version_expired(version)
        self._handler.list_started()

    async def _hand_over_page(self, page: ListPage[Any]) -> None:
        """Passes a portion of a list to the handler, in parts by work, and returns to the event loop between them."""
        for number, part in enumerate(portions(page.items, [self._work(item) for item in page.items], MAX_WORK)):
            if number:
                await asyncio.sleep(0)
            self._handler.list_page(part, ())
        if page.unreadable:
            self._handler.list_page([], page.unreadable)

    def _complete(self, version: str, number: int) -> None:
        self._handler.list_finished()
        self.version = self._latest = version
        self._unsure = False
        self.synced = self.served = True
        self._list_pages.complete()
        self._backoff.not_forbidden()
        self._note_answer()
        self._goes_on()
        self._regain()
        self._waiters.reached(self.version, number)

    # A watch.

    async def _reach(self) -> None:
        """Has the server confirm, if in doubt, that it has reached `version`. Raises ApiError if it has not."""
        if self._unsure:
            raw = await self._client.send(reaching(self.resource, self.version), timeout=self._timing.list_page)
            if self.lost_since is not None:
                self._moment = decode_list(raw, self._kind).resource_version
            self._unsure = False

    async def _watch(self) -> None:
        seconds = self._rng.uniform(self._timing.shortest, self._timing.longest)
        path = watch_path(self.resource, self.version, seconds=max(int(seconds), 1), fields=self._fields)
        self._stream = stream = await self._client.stream(path)
        self.watching, began = True, self._clock.now()
        self._goes_on()
        unsettled = self.lost_since is not None or self._backoff.failures > 0
        settles = asyncio.ensure_future(self._settle()) if unsettled else None
        try:
            async with asyncio.timeout(seconds + self._timing.grace):
                silent = not await self._follow(stream)
        except TimeoutError:
            raise Uncertain("the watch fell silent and was dropped") from None
        finally:
            if settles is not None:
                settles.cancel()
            stream.close()
            self._stream, self.watching = None, False
        if silent and self._begun >= self._wanted and self._clock.now() - began < self._timing.short:
            raise Uncertain("the watch ended at once, without a word")
        self._unsure = silent
        self._backoff.reset()

    async def _settle(self) -> None:
        """Ends a loss after the watch is open again, and resets the backoff. The server sends missed events first and
        at once, so a moment without any is enough, or none if the server's version is reached. Bookmarks would be
        certain, but come once a minute."""
        if self.lost_since is None or not version_at_least(self.version, self._moment):
            await self._sleep(self._timing.short)
        self._backoff.reset()
        self._note_answer()
        self._regain()

    async def _follow(self, stream: LineStream) -> bool:
        """Handles lines until the server ends the watch. Returns whether any came."""
        received, bookmarked = False, False
        while True:
            async with asyncio.timeout(self._timing.silence if bookmarked else None):
                lines = await stream.batch(_MAX_LINES)
            if not lines:
                return received
            received, several = True, len(lines) == _MAX_LINES
            for portion in portions(lines, [*map(len, lines)]):
                batch = decode_watch_lines(portion, self._kind)
                bookmarked = bookmarked or batch.bookmarked
                for part in split_batch(batch, self._work):
                    self._hand_over(part)
                    if several or len(portion) < len(lines) or part is not batch:
                        await asyncio.sleep(0)

    def _hand_over(self, batch: WatchBatch) -> None:
        """Passes a batch to the handler. Raises if a version is lower than one before: the store was restored then."""
        earlier = batch.first if before(batch.first, self.version) else batch.rewound
        if earlier:
            raise version_too_large(self.version, earlier)
        if batch.changes:
            self._handler.events(batch.changes)
        self.version = self._latest = batch.version or self.version
        if batch.error is not None:
            raise batch.error
        self._backoff.reset()
        self._note_answer()
        if version_at_least(self.version, self._moment):
            self._regain()
        self._waiters.reached(self.version)

    # Failures, and how long to wait.

    def _refused(self, error: ApiError) -> float:
        trouble = WatchProblem(self.resource, error.code, str(error), serious=self._serious)
        if error.code == 410 or error.reason in ("Expired", "Gone") or is_version_too_large(error):
            return self._expired()
        if error.code == 404:
            return self._absent(trouble)
        wait = self._failed(trouble)
        if error.code == 403:
            return self._backoff.forbidden(was_listed=self.synced)
        self._backoff.not_forbidden()
        return max(wait, error.retry_after or 0.0)

    def _expired(self) -> float:
        """Has the next step list, since the version is too old or too new for the server."""
        self.version = ""
        self.restarts += 1
        if self.synced:
            self._lose()
        self._group.version_expired("")
        return self._backoff.expired()

    def _absent(self, trouble: WatchProblem) -> float:
        """Tries the next version of a kind that is not served. If none is, reports an empty list."""
        if self._surprising():
            return self._failed(trouble)
        self.version = ""
        if self._form + 1 < len(self._forms):
            self._form += 1
            return 0.0
        self._form = 0
        if self.served or not self.synced or self.missing:
            self._handler.list_started()
            self._handler.list_finished()
        self.synced, self.served = True, False
        self._note(trouble)
        self._waiters.reached(self.version, self._begun)
        return self._backoff.not_served()

    def _surprising(self) -> bool:
        """Whether a 404 is not to be believed. A core kind cannot vanish, and one that was served may be missing while
        a server starts. An empty list would delete every such object."""
        return not self.resource.group or (self.synced and self.served and self._backoff.failures < _DOUBT)

    def _failed(self, trouble: WatchProblem) -> float:
        self.restarts += 1
        if self.synced and (trouble.serious or trouble.code == 403):
            self._lose()
        self._note(trouble)
        return self._backoff.failed()

    def _lose(self) -> None:
        """Begins the time in which objects may be outdated."""
        if self.lost_since is None:
            self.lost_since = self._clock.now()

    def _goes_on(self) -> None:
        """Reports to the group if the server answers again after a failure."""
        if self._failing:
            self._failing = False
            self._group.server_answers()

    def _regain(self) -> None:
        """Ends the time in which objects may be outdated."""
        if self.lost_since is not None:
            self.lost_since = None
            self._group.server_answers()

    def _note(self, trouble: WatchProblem) -> None:
        self.last_error = trouble.text
        if trouble != self._reported_problem:
            self._reported_problem = trouble
            self._handler.problem_changed(trouble)

    def _note_answer(self) -> None:
        self.last_event_at = self._clock.now()
        self.last_error = ""
        if self._reported_problem is not None:
            self._reported_problem = None
            self._handler.problem_changed(WatchProblem(self.resource))
