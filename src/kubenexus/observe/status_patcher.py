"""`StatusPatcher`: patches the status of pods, and of pod groups, with the reason why they wait. Binds go first.

    submit ─▶ waiting ─▶ in flight ─▶ written
                 ▲            │ failed
                 └── resting ◀┘ ─ too often ─▶ given up

A newer patch replaces the waiting patch of the same object. A pod that no node fits a hundred times while the API
server is away costs one call.

A failed patch rests and is sent again; meanwhile other patches are sent. Without a second try the reason might never be
written: a pod may wait for good after a single attempt to place it.

Namespaces take turns, and a namespace whose patches hang has two writers at most (`client.fair_queue`). Neither a
webhook that denies a patch nor ten thousand pods of one tenant delay the patches of another tenant.

A patch must not reach a pod after its bind, since it says that there is no node for the pod. A patch that still waits
at the bind is dropped, and the bind waits for a patch in flight.

A write of the same status that follows anyway may carry the patch: `keep_back` before it, `carried` around it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

import msgspec

from kubenexus.api.core import Pod
from kubenexus.api.reservations.resource_reservation import ResourceReservation
from kubenexus.api.workloads import PodGroup
from kubenexus.bind.job_binding import PodBinding, WriteGuard
from kubenexus.client.calls import Api, ApiError, Call, Uncertain, Unreachable
from kubenexus.client.fair_queue import CallInFlight, FairQueue

WRITERS = 8
SLOW = 2  # of the writers, for namespaces whose patches hang
# Seconds between two tries, two minutes in all. A patch that fails after all of them would fail for ever.
PAUSES = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 40.0, 40.0)

WaitForQuiet = Callable[[], Awaitable[None]]
Noted = TypeVar("Noted", bound=Pod | PodGroup | ResourceReservation)


class PendingPatch(msgspec.Struct, Generic[Noted]):
    """A patch of the pod or group `noted`, and how often the patch failed."""

    noted: Noted
    call: Call
    refused: int = 0


class StatusPatcher(Generic[Noted]):
    """Queues patches and sends them. Also a `PreBind` point, which makes a bind wait for a patch of its pod in flight.

    `still` returns whether a patch is still true, just before it is sent. `failed` is called with an object whose patch
    was given up, and why; `dropped` with one whose patch was no longer true. After an answer with a code of `settled` a
    call is of no use. `stalled` is called with a namespace whose patches do not go through, and how many wait.
    """

    name = "StatusPatcher"
    awaited = "status patches"

    def __init__(
        self,
        api: Api,
        guard: WriteGuard,
        still: Callable[[Noted], bool],
        failed: Callable[[Noted, str], None] = lambda noted, why: None,
        stalled: Callable[[str, int], None] = lambda namespace, count: None,
        settled: frozenset[int] = frozenset({404, 422}),
        *,
        dropped: Callable[[Noted], None] = lambda noted: None,
    ) -> None:
        self._settled, self._dropped = settled, dropped
        self._api, self._guard, self._still, self._failed = api, guard, still, failed
        self._work = asyncio.Event()
        # All by UID.
        self._queue = FairQueue[PendingPatch[Noted]](WRITERS, slow=SLOW, changed=self._work.set, stalled=stalled)
        self._latest: dict[str, PendingPatch[Noted]] = {}  # waiting, resting or in flight
        self._following: dict[str, PendingPatch[Noted]] = {}  # newer than the patch in flight
        self._on_the_way: dict[str, asyncio.Event] = {}
        self._kept_back: set[str] = set()

    def __len__(self) -> int:
        """The number of patches that have yet to be sent, or sent again."""
        return len(self._queue) + len(self._following) + sum(uid in self._latest for uid in self._kept_back)

    def __contains__(self, uid: str) -> bool:
        """Whether a patch of the object with this UID is waiting, resting or in flight."""
        return uid in self._latest

    def submit(self, noted: Noted, call: Call) -> None:
        """Queues a patch, which replaces a waiting one of the same object. Does not block."""
        uid, patch = noted.metadata.uid, PendingPatch(noted, call)
        self._latest[uid] = patch
        if uid in self._on_the_way:
            self._following[uid] = patch
        else:
            self._enqueue(patch)

    def cancel(self, uid: str) -> None:
        """Drops the waiting patches of an object, which was deleted or placed."""
        self._following.pop(uid, None)
        patch = self._latest.pop(uid, None)
        if patch is not None:
            self._queue.remove(patch.noted.metadata.namespace, uid)

    def keep_back(self, uid: str) -> None:
        """Keeps the patches of an object from being sent, until `carried` or `send_kept` is called for it."""
        self._kept_back.add(uid)
        patch = self._latest.get(uid)
        if patch is not None:
            self._queue.remove(patch.noted.metadata.namespace, uid)

    def send_kept(self, uid: str) -> None:
        """Ends `keep_back`: no other write carries the patch."""
        if uid in self._kept_back:
            self._kept_back.remove(uid)
            patch = self._latest.get(uid)
            if patch is not None and uid not in self._on_the_way:
                self._enqueue(patch)

    @contextmanager
    def carried(self, uid: str) -> Iterator[Call | None]:
        """Yields the waiting patch of an object, if there is one, for the caller's write of its status to carry it.

        A bind waits for the end of the body. If the body raises, the patch is sent by itself.
        """
        patch = self._latest.get(uid)
        if patch is None or uid in self._on_the_way or not self._still(patch.noted):
            self.send_kept(uid)
            yield None
            return
        self._kept_back.discard(uid)
        self._queue.remove(patch.noted.metadata.namespace, uid)
        self._on_the_way[uid], written = asyncio.Event(), False
        try:
            yield patch.call
            written = True
        finally:
            self._on_the_way.pop(uid).set()
            newer = self._following.pop(uid, None)
            if newer is not None:
                self._enqueue(newer)
            elif self._latest.get(uid) is patch:
                if written:
                    del self._latest[uid]
                else:
                    self._enqueue(patch)

    def may_concern(self, pod: Pod) -> bool:
        return False  # the wait is short: for one write, at most until its timeout

    def concerns(self, pod_binding: PodBinding) -> bool:
        self.cancel(pod_binding.uid)
        return pod_binding.uid in self._on_the_way

    async def pre_bind(self, pod_binding: PodBinding) -> str:
        on_the_way = self._on_the_way.get(pod_binding.uid)
        if on_the_way is not None:
            await on_the_way.wait()
        return ""

    async def run(self, wait_for_quiet: WaitForQuiet) -> None:
        """Sends queued patches until cancelled. `wait_for_quiet` returns when no bind waits to be sent."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                self._work.clear()
                if self._queue.waiting:
                    await wait_for_quiet()
                while (call := self._queue.next()) is not None:
                    # Set here and not in the task, so that a patch submitted before the task begins follows this one.
                    self._on_the_way[call.item.noted.metadata.uid] = asyncio.Event()
                    tasks.create_task(self._try(call))
                await self._work.wait()

    async def _try(self, call: CallInFlight[PendingPatch[Noted]]) -> None:
        """Tries once to send. The patch is then written, dropped as no longer true, resting, or given up."""
        patch, uid = call.item, call.item.noted.metadata.uid
        still = self._still(patch.noted)
        try:
            problem, answered = await self._send(call) if still else ("", False)
        finally:
            self._on_the_way.pop(uid).set()
        newer = self._following.pop(uid, None)
        if newer is not None:
            self._enqueue(newer)
        latest = self._latest.get(uid) is patch  # else a newer patch follows, or `cancel` dropped this one
        if latest and problem and patch.refused < len(PAUSES):
            patch.refused += 1
            self._queue.postpone(call, PAUSES[patch.refused - 1], sent=answered)
            return
        self._queue.done(call, through=not problem, sent=answered)
        if latest:
            del self._latest[uid]
            if problem:
                self._failed(patch.noted, problem)
            elif not still:
                self._dropped(patch.noted)

    def _enqueue(self, patch: PendingPatch[Noted]) -> None:
        meta = patch.noted.metadata
        if meta.uid not in self._kept_back:
            self._queue.put(meta.namespace, meta.uid, patch)

    async def _send(self, call: CallInFlight[PendingPatch[Noted]]) -> tuple[str, bool]:
        """Sends the call. Returns what went wrong, "" if nothing did, and whether the server answered.

        Without leadership the patch fails and rests rather than being dropped: this process may lead again in a moment,
        and the patch would not be submitted again.
        """
        if not self._guard.may_write():
            return "this process does not lead any more", False
        try:
            await self._api.send(call.item.call, timeout=call.timeout(self._guard.write_timeout))
        except ApiError as error:
            # The object was deleted, or another object has its name. The patch is then of no use.
            return "" if error.code in self._settled else str(error), True
        except (Unreachable, Uncertain) as error:
            return str(error), False
        except Exception as error:  # a defect here or in the client costs one patch and not the process
            return f"{type(error).__name__}: {error}", False
        return "", True
