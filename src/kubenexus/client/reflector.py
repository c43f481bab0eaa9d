"""A list that goes on as a watch, for as long as we run: how every room hears of the cluster.

    list ──▶ watch ──▶ watch ──▶ ...      the server ends a watch every few minutes; the next begins where it ended
      ▲        │
      └────────┘ 410: too much has happened since; or the server went back to an earlier state. Only a list helps

What it says is complete and in order: after `end` the receiver has the state of one moment, and each change since. A
failure delays, it never drops anything.

A server whose store was restored from a backup counts on from an earlier resourceVersion. It accepts a watch from a
version that it has yet to reach, and sends nothing until it gets there. So after a watch that broke or sent nothing the
reflector requests one object "not older than" its version, which such a server refuses: 504, too large.
"""

import asyncio
import contextlib
import math
import random
from collections.abc import Callable

from kubenexus.api.codec import decode_list
from kubenexus.base.clock import Clock, Sleep
from kubenexus.base.errors import Malformed
from kubenexus.client.backoff import Backoff
from kubenexus.client.calls import ApiError, Uncertain, Unreachable
from kubenexus.client.kinds import ApiResource
from kubenexus.client.list_pages import ListPages
from kubenexus.client.verbs import list_call, reaching, watch_path
from kubenexus.client.watch_events import WatchBatch, before, decode_watch_lines, portions, version_at_least
from kubenexus.client.watch_protocols import (
    LineStream,
    WatchClient,
    WatchHandler,
    WatchProblem,
    WatchTarget,
    WatchTiming,
)

_MOST = 256  # lines in one batch: a few milliseconds of work, then the loop may do something else
_FAILURES = 3  # of a watch in a row, before what it would have said counts as unknown
_TOO_LARGE = 504
_REWOUND = "Too large resource version"  # as kube-apiserver words it
_DOUBT = 5  # times in a row that a kind we knew must be missing before we believe it


class Reflector:
    """Follows one kind. `app` makes one for each and runs it as a task."""

    def __init__(
        self,
        client: WatchClient,
        target: WatchTarget,
        tell: WatchHandler,
        *,
        clock: Clock,
        rng: random.Random,
        timing: WatchTiming | None = None,
        sleep: Sleep = asyncio.sleep,
        answered: Callable[[], None] = lambda: None,
    ) -> None:
        """`answered` is called when the server answers again after a failure, so that others need not wait (`retry`),
        and when all is told that was missed."""
        self._client, self._tell, self._kind, self._fields = client, tell, target.type, target.fields
        self._forms, self._form = (target.resource, *target.fallback_resources), 0
        self._clock, self._rng, self._sleep = clock, rng, sleep
        self._timing = timing = timing or WatchTiming()
        self._backoff = Backoff(rng, timing.backoff, timing.longest_backoff)
        self._begun, self._wanted = 0, 1  # lists
        self._list_pages = ListPages(client, target, timing)
        self._stream: LineStream | None = None
        self._nudged = asyncio.Event()
        self._answered, self._failing = answered, False
        self._pausing = False  # because the server did not answer; not because it has refused
        self._retried_at = -math.inf
        self._moment = ""  # how far the server was when it answered again
        self._waiting: list[tuple[str, int, asyncio.Future[None]]] = []
        self._told: WatchProblem | None = None
        self._latest = ""  # the version of the last list or watch, kept while a new list is under way
        self._unsure = False  # the last watch broke or sent nothing: the server may have been restored from a backup
        # For readiness, metrics and who decides; nobody else writes them.
        self.lost_since: float | None = None  # from when on what was told may be outdated; None: it is not, or not much
        self.version = ""  # how far we are, "" if only a list will tell
        self.synced = False  # one list has been complete, or there is nothing to list
        self.served = True  # the server knows the kind
        self.watching = False  # a watch is open
        self.last_event_at = 0.0  # the last word of the server on this kind
        self.last_error = ""  # "" when all is well
        self.restarts = 0  # lists and watches that failed
        self.rewinds = 0  # lists of an earlier state than the one before: the server's store was restored

    @property
    def resource(self) -> ApiResource:
        """The form of the kind that is followed now."""
        return self._forms[self._form]

    @property
    def wanted(self) -> ApiResource:
        """The form of the kind that was asked for, whichever the server knows."""
        return self._forms[0]

    @property
    def missing(self) -> str:
        """Why objects of the kind may be unknown or outdated; "" when all is well, or the kind is not served."""
        if self._told is not None:
            return "" if self._told.code == 404 and not self.served else self._told.text
        return "" if self.synced else "not listed yet"

    @property
    def _serious(self) -> bool:
        """Whether a failure now means that objects may be unknown: most watches that break go on at once."""
        return not self.version or self._backoff.failures >= _FAILURES

    async def run(self) -> None:
        """Until cancelled. Only a mistake in the receiver ends it otherwise."""
        while True:
            await self.step()

    async def step(self) -> None:
        """One list, or one watch from its beginning to its end; and after a failure the wait."""
        try:
            if not self.version or self._begun < self._wanted:
                await self._list()
            else:
                await self._reach()
                await self._watch()
        except ApiError as error:
            self._unsure = self._failing = True
            await self._pause(self._refused(error), unanswered=error.code >= 500 and not error.retry_after)
        except (Unreachable, Uncertain, Malformed) as error:
            self._unsure = self._failing = True
            trouble = WatchProblem(self.resource, 0, str(error), serious=self._serious)
            await self._pause(self._failed(trouble), unanswered=True)

    def relist(self) -> None:
        """Begin anew with a list, now: somebody doubts what we have told."""
        self._wanted = self._begun + 1
        self._nudged.set()
        if self._stream is not None:
            self._stream.close()

    def retry(self) -> None:
        """The server answers others: if we wait because it did not answer us, that is over. Not twice within seconds: a
        server that answers now and then must not be asked without pause by all reflectors in turn."""
        now = self._clock.now()
        if self._pausing and now - self._retried_at >= self._timing.retried:
            self._retried_at = now
            self._nudged.set()

    async def wait_until_current(self, *, patience: float = 0.5) -> None:
        """Until the receiver has been told everything that happened before this call. For the first bind after a start
        or a take-over. Asks the server how far it is; if no event takes us there soon, lists anew.

        Raises what the question raises; has no limit of its own while the server is away.
        """
        begun, version = self._begun, self.version
        try:
            raw = await self._client.send(list_call(self.resource, limit=1))
        except ApiError as error:
            if error.code == 404:
                return
            raise
        moment = decode_list(raw, self._kind).resource_version
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        rewound = before(moment, version)
        self._waiting.append(("" if rewound else moment, begun, done))  # "" is never reached: only a list will do
        if rewound:
            self.relist()
        self._reached(0)
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
                    self._tell.list_started()
                self._tell.list_page(portion.items, portion.unreadable)
                first, version = False, portion.resource_version
        if not version:
            raise Malformed("has no resourceVersion", field="metadata", subject=f"list of {self.resource}")
        self._complete(version, number)

    def _complete(self, version: str, number: int) -> None:
        self._tell.list_finished()
        if before(version, self._latest):
            self.rewinds += 1
            text = f"the server went back from resourceVersion {self._latest} to {version}; listed again"
            self._note(WatchProblem(self.resource, 0, text))
        self.version = self._latest = version
        self._unsure = False
        self.synced = self.served = True
        self._list_pages.complete()
        self._heard()
        self._goes_on()
        self._regain()
        self._reached(number)

    # A watch.

    async def _reach(self) -> None:
        """Where that is in doubt, have the server confirm that it is as far as we are. Raises ApiError if it is not."""
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
        settles = asyncio.ensure_future(self._settle()) if self.lost_since is not None else None
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
        """The watch is open again. What was missed comes first, and at once: unless the server has said that there is
        nothing, it gets a moment for that. Bookmarks, which would tell for certain, come once a minute."""
        if not version_at_least(self.version, self._moment):
            await self._sleep(self._timing.short)
        self._backoff.reset()
        self._heard()
        self._regain()

    async def _follow(self, stream: LineStream) -> bool:
        """Hand over what comes until the server ends it. Whether anything came."""
        heard, bookmarked = False, False
        while True:
            async with asyncio.timeout(self._timing.silence if bookmarked else None):
                lines = await stream.batch(_MOST)
            if not lines:
                return heard
            heard, several = True, len(lines) == _MOST
            for portion in portions(lines, [*map(len, lines)]):
                batch = decode_watch_lines(portion, self._kind)
                bookmarked = bookmarked or batch.bookmarked
                self._hand_over(batch)
                if several or len(portion) < len(lines):
                    await asyncio.sleep(0)

    def _hand_over(self, batch: WatchBatch) -> None:
        """Within one watch versions only grow. One that does not is of another history: only a list tells what is."""
        earlier = batch.first if before(batch.first, self.version) else batch.rewound
        if earlier:
            raise ApiError(_TOO_LARGE, message=f"{_REWOUND}: {self.version}, current: {earlier}")
        if batch.changes:
            self._tell.events(batch.changes)
        self.version = self._latest = batch.version or self.version
        if batch.error is not None:
            raise batch.error
        self._backoff.reset()
        self._heard()
        if version_at_least(self.version, self._moment):
            self._regain()
        self._reached(0)

    # What went wrong, and how long to wait.

    def _refused(self, error: ApiError) -> float:
        trouble = WatchProblem(self.resource, error.code, str(error), serious=self._serious)
        if error.code == 410 or error.reason in ("Expired", "Gone") or _too_large(error):
            return self._expired()
        if error.code == 404:
            return self._absent(trouble)
        wait = self._failed(trouble)
        if error.code == 403:
            return self._backoff.spread(self._timing.forbidden)
        return max(wait, error.retry_after or 0.0)

    def _expired(self) -> float:
        """Too much has happened since, or the server is not as far as we are. Normal once; again and again it is a
        failure like any other."""
        self.version = ""
        self.restarts += 1
        first = self._backoff.failures == 0
        wait = self._backoff.next()
        return 0.0 if first else wait

    def _absent(self, trouble: WatchProblem) -> float:
        """Not served here, in this form. In none: then there are no such objects, and that is all there is to know."""
        if self._surprising():
            return self._failed(trouble)
        self.version = ""
        if self._form + 1 < len(self._forms):
            self._form += 1
            return 0.0
        self._form = 0
        if self.served or not self.synced or self.missing:
            self._tell.list_started()
            self._tell.list_finished()
        self.synced, self.served = True, False
        self._note(trouble)
        self._reached(self._begun)
        return self._backoff.spread(self._timing.absent)

    def _surprising(self) -> bool:
        """A kind cannot vanish from the core; and one that was served may just be missing while a server starts. To
        believe it would be to tell that every such object is gone."""
        return not self.resource.group or (self.synced and self.served and self._backoff.failures < _DOUBT)

    def _failed(self, trouble: WatchProblem) -> float:
        self.restarts += 1
        if self.synced and self.lost_since is None and (trouble.serious or trouble.code == 403):
            self.lost_since = self._clock.now()
        self._note(trouble)
        return self._backoff.next()

    def _goes_on(self) -> None:
        """The server has answered."""
        if self._failing:
            self._failing = False
            self._answered()

    def _regain(self) -> None:
        """What was missed has been told."""
        if self.lost_since is not None:
            self.lost_since = None
            self._answered()

    async def _pause(self, seconds: float, *, unanswered: bool) -> None:
        """Wait, unless a list is wanted now, or the server that did not answer does so again."""
        self._nudged.clear()
        self._pausing = unanswered
        tasks = [asyncio.ensure_future(self._sleep(seconds)), asyncio.ensure_future(self._nudged.wait())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._pausing = False
            for task in tasks:
                task.cancel()

    def _note(self, trouble: WatchProblem) -> None:
        self.last_error = trouble.text
        if trouble != self._told:
            self._told = trouble
            self._tell.problem_changed(trouble)

    def _heard(self) -> None:
        self.last_event_at = self._clock.now()
        self.last_error = ""
        if self._told is not None:
            self._told = None
            self._tell.problem_changed(WatchProblem(self.resource))

    def _reached(self, number: int) -> None:
        """Let go who waits for a version we have, or for a list (`number`) begun after they asked."""
        for moment, begun, done in self._waiting:
            if not done.done() and (number > begun or version_at_least(self.version, moment)):
                done.set_result(None)
        self._waiting = [each for each in self._waiting if not each[2].done()]


def _too_large(error: ApiError) -> bool:
    """Whether the server has yet to reach the version that we named: kube-apiserver answers 504, as a gateway does."""
    return error.code == _TOO_LARGE and _REWOUND in error.message
