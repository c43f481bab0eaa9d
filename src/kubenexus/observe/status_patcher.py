"""Notes on pods: patches of their status that say why they wait. Less urgent than any bind, and never in its way.
Notes on groups of pods are written in the same way.

What waits to be written about a pod is replaced by what is newer, so that a pod that is refused a hundred times while
the server is away costs one call. What could not be written is written again after a while: a pod that waits for good
is not refused a second time, and would never say why. Until then it rests, and those that stand behind it are written
first. Namespaces take turns, and one whose notes hang has two writers at most (`client.fair_queue`): neither an object
that no webhook lets through nor ten thousand pods of one tenant keep another from hearing why its pod waits. A note
must not reach a pod after it was bound (it says that there is no node): it is dropped when the pod has taken off
meanwhile, and a bind waits for a note that is on its way.

    write ─▶ waiting ─▶ on its way ─▶ written
                ▲            │ refused
                └── resting ◀┘ ─ too often ─▶ given up
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import msgspec

from kubenexus.api.core import Pod
from kubenexus.api.workloads import PodGroup
from kubenexus.bind.job_binding import PodBinding, WriteGuard
from kubenexus.client.calls import Api, ApiError, Call, Uncertain, Unreachable
from kubenexus.client.fair_queue import CallInFlight, FairQueue

WRITERS = 8
SLOW = 2  # of these, for namespaces whose notes hang
# Seconds between two tries, two minutes in all. Whoever is refused after all of them would be refused for ever.
PAUSES = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 40.0, 40.0)

Room = Callable[[], Awaitable[None]]
Noted = TypeVar("Noted", bound=Pod | PodGroup)


class PendingPatch(msgspec.Struct, Generic[Noted]):
    """What is to be said of a pod, and how often that was refused."""

    noted: Noted
    call: Call
    refused: int = 0


class StatusPatcher(Generic[Noted]):
    """A `PreBind` point, too. `still`: whether the note is still true; `failed` hears of those that were given up, and
    `stalled` of namespaces whose notes do not go through, with how many wait."""

    name = "StatusPatcher"
    awaited = "status patches"

    def __init__(
        self,
        api: Api,
        guard: WriteGuard,
        still: Callable[[Noted], bool],
        failed: Callable[[Noted, str], None] = lambda noted, why: None,
        stalled: Callable[[str, int], None] = lambda namespace, count: None,
    ) -> None:
        self._api, self._guard, self._still, self._failed = api, guard, still, failed
        self._work = asyncio.Event()
        # All by UID.
        self._queue = FairQueue[PendingPatch[Noted]](WRITERS, slow=SLOW, changed=self._work.set, stalled=stalled)
        self._latest: dict[str, PendingPatch[Noted]] = {}  # waiting, resting or on its way
        self._following: dict[str, PendingPatch[Noted]] = {}  # newer than one that is on its way
        self._on_the_way: dict[str, asyncio.Event] = {}

    def __len__(self) -> int:
        """How many have yet to be sent, or sent again."""
        return len(self._queue) + len(self._following)

    def submit(self, noted: Noted, call: Call) -> None:
        """Never waits."""
        uid, patch = noted.metadata.uid, PendingPatch(noted, call)
        self._latest[uid] = patch
        if uid in self._on_the_way:
            self._following[uid] = patch
        else:
            self._queue.put(noted.metadata.namespace, uid, patch)

    def cancel(self, uid: str) -> None:
        """The pod is gone, or placed."""
        self._following.pop(uid, None)
        patch = self._latest.pop(uid, None)
        if patch is not None:
            self._queue.remove(patch.noted.metadata.namespace, uid)

    def may_concern(self, pod: Pod) -> bool:
        return False  # the wait is for one write, and ends with its timeout

    def concerns(self, pod_binding: PodBinding) -> bool:
        self.cancel(pod_binding.uid)
        return pod_binding.uid in self._on_the_way

    async def pre_bind(self, pod_binding: PodBinding) -> str:
        on_the_way = self._on_the_way.get(pod_binding.uid)
        if on_the_way is not None:
            await on_the_way.wait()
        return ""

    async def run(self, room: Room) -> None:
        """Until cancelled. `room` returns when no bind waits for its turn."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                self._work.clear()
                if self._queue.waiting:
                    await room()
                while (call := self._queue.next()) is not None:
                    # From now on, not from when its task begins: what is written meanwhile follows it.
                    self._on_the_way[call.item.noted.metadata.uid] = asyncio.Event()
                    tasks.create_task(self._try(call))
                await self._work.wait()

    async def _try(self, call: CallInFlight[PendingPatch[Noted]]) -> None:
        """Once: it is written, or no longer true, or rests, or was refused too often."""
        patch, uid = call.item, call.item.noted.metadata.uid
        try:
            problem = await self._send(patch.call) if self._still(patch.noted) else ""
        finally:
            self._on_the_way.pop(uid).set()
        newer = self._following.pop(uid, None)
        if newer is not None:
            self._queue.put(call.namespace, uid, newer)
        latest = self._latest.get(uid) is patch  # else something newer follows, or it is of no use any more
        if latest and problem and patch.refused < len(PAUSES):
            patch.refused += 1
            self._queue.postpone(call, PAUSES[patch.refused - 1])
            return
        self._queue.done(call, through=not problem)
        if latest:
            del self._latest[uid]
            if problem:
                self._failed(patch.noted, problem)

    async def _send(self, call: Call) -> str:
        """What went wrong, "" if nothing did. Who does not lead now may lead again in a moment, and would not be told
        again what to write."""
        if not self._guard.may_write():
            return "this process does not lead any more"
        try:
            await self._api.send(call, timeout=self._guard.write_timeout)
        except ApiError as error:
            # It is gone, or another has its name. Neither is anybody's concern.
            return "" if error.code in (404, 422) else str(error)
        except (Unreachable, Uncertain) as error:
            return str(error)
        except Exception as error:  # a mistake of ours, or of the client's, costs one note and not the process
            return f"{type(error).__name__}: {error}"
        return ""
