"""Notes on pods: patches of their status that say why they wait. Less urgent than any bind, and never in its way.
Notes on groups of pods are written in the same way.

What waits to be written about a pod is replaced by what is newer, so that a pod that is refused a hundred times while
the server is away costs one call. What could not be written is written again after a while: a pod that waits for good
is not refused a second time, and would never say why. Until then it rests, and whoever stands behind it is written
first: one object that no webhook lets through holds up nobody. A note must not reach a pod after it was bound (it says
that there is no node): it is dropped when the pod has taken off meanwhile, and a bind waits for a note that is on its
way.

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
from kubenexus.bind.commitment import Bind, Guard
from kubenexus.client.calls import Api, ApiError, Call, Uncertain, Unreachable

WRITERS = 8
# Seconds between two tries, two minutes in all. Whoever is refused after all of them would be refused for ever.
PAUSES = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 40.0, 40.0)

Room = Callable[[], Awaitable[None]]
Noted = TypeVar("Noted", bound=Pod | PodGroup)


class Note(msgspec.Struct, Generic[Noted]):
    """What is to be said of a pod, and how often that was refused."""

    noted: Noted
    call: Call
    refused: int = 0


class Notes(Generic[Noted]):
    """A `PreBind` point, too. `still`: whether the note is still true; `failed` hears of those that were given up."""

    name = "Notes"
    awaited = "notes"

    def __init__(
        self,
        api: Api,
        guard: Guard,
        still: Callable[[Noted], bool],
        failed: Callable[[Noted, str], None] = lambda noted, why: None,
    ) -> None:
        self._api, self._guard, self._still, self._failed = api, guard, still, failed
        # All by UID.
        self._latest: dict[str, Note[Noted]] = {}  # waiting, resting or on its way
        self._waiting: dict[str, Note[Noted]] = {}  # in the order in which they are written
        self._resting: dict[str, asyncio.TimerHandle] = {}
        self._on_the_way: dict[str, asyncio.Event] = {}
        self._work = asyncio.Event()

    def __len__(self) -> int:
        """How many have yet to be sent, or sent again."""
        return len(self._waiting) + len(self._resting)

    def write(self, noted: Noted, call: Call) -> None:
        """Never waits."""
        uid = noted.metadata.uid
        self._rest_no_more(uid)
        self._latest[uid] = self._waiting[uid] = Note(noted, call)
        self._work.set()

    def drop(self, uid: str) -> None:
        """The pod is gone, or placed."""
        self._rest_no_more(uid)
        self._waiting.pop(uid, None)
        self._latest.pop(uid, None)

    def may_concern(self, pod: Pod) -> bool:
        return False  # the wait is for one write, and ends with its timeout

    def concerns(self, bind: Bind) -> bool:
        self.drop(bind.uid)
        return bind.uid in self._on_the_way

    async def pre_bind(self, bind: Bind) -> str:
        on_the_way = self._on_the_way.get(bind.uid)
        if on_the_way is not None:
            await on_the_way.wait()
        return ""

    async def run(self, room: Room) -> None:
        """Until cancelled. `room` returns when no bind waits for its turn."""
        async with asyncio.TaskGroup() as tasks:
            for _ in range(WRITERS):
                tasks.create_task(self._write_on(room))

    async def _write_on(self, room: Room) -> None:
        while True:
            while not self._next():
                self._work.clear()
                await self._work.wait()
            await room()
            uid = self._next()
            if uid:  # another writer may have taken it meanwhile
                await self._try(uid, self._waiting.pop(uid))

    def _next(self) -> str:
        """Of whom something can be written now. What is newer than a note on its way follows when that has arrived."""
        return next((uid for uid in self._waiting if uid not in self._on_the_way), "")

    async def _try(self, uid: str, note: Note[Noted]) -> None:
        """Once: it is written, or no longer true, or rests, or was refused too often."""
        problem = await self._send(uid, note.call) if self._still(note.noted) else ""
        if self._latest.get(uid) is not note:
            return  # something newer follows, or nobody wants to know any more
        if problem and note.refused < len(PAUSES):
            self._rest(uid, note)
            return
        del self._latest[uid]
        if problem:
            self._failed(note.noted, problem)

    def _rest(self, uid: str, note: Note[Noted]) -> None:
        pause = PAUSES[note.refused]
        note.refused += 1
        self._resting[uid] = asyncio.get_running_loop().call_later(pause, self._line_up, uid, note)

    def _rest_no_more(self, uid: str) -> None:
        timer = self._resting.pop(uid, None)
        if timer is not None:
            timer.cancel()

    def _line_up(self, uid: str, note: Note[Noted]) -> None:
        """At the end of the line: there may be others who have not had a single try."""
        del self._resting[uid]
        self._waiting[uid] = note
        self._work.set()

    async def _send(self, uid: str, call: Call) -> str:
        """What went wrong, "" if nothing did. Who does not lead now may lead again in a moment, and would not be told
        again what to write."""
        if not self._guard.may_write():
            return "this process does not lead any more"
        done = self._on_the_way[uid] = asyncio.Event()
        try:
            await self._api.send(call, timeout=self._guard.write_timeout)
        except ApiError as error:
            # It is gone, or another has its name. Neither is anybody's concern.
            return "" if error.code in (404, 422) else str(error)
        except (Unreachable, Uncertain) as error:
            return str(error)
        finally:
            del self._on_the_way[uid]
            done.set()
            self._work.set()
        return ""
