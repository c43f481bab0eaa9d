"""Tracks which pods have a node or have been tried, and lets scenarios wait for that.

It listens to the store, so it knows what the API server knows and nothing earlier. A wait costs one check for each
change, regardless of the number of pods.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable

import msgspec

from kubenexus.sim.apiserver.store import DELETED, Store, StoreChange

PODS = "pods"
SCHEDULED = "PodScheduled"


class _Condition(msgspec.Struct, frozen=True, gc=False):
    type: str = ""
    message: str = ""


class _Meta(msgspec.Struct, frozen=True, gc=False):
    labels: dict[str, str] = {}


class _Spec(msgspec.Struct, rename="camel", frozen=True, gc=False):
    node_name: str = ""


class _Status(msgspec.Struct, frozen=True, gc=False):
    conditions: list[_Condition] = []


class TrackedPod(msgspec.Struct, frozen=True):
    """The fields of a pod that the tracker needs."""

    metadata: _Meta = _Meta()
    spec: _Spec = _Spec()
    status: _Status = _Status()

    @property
    def placed(self) -> bool:
        return bool(self.spec.node_name)

    @property
    def attempted(self) -> bool:
        """Whether the pod has a node or a PodScheduled condition: what scheduler_perf calls attempted."""
        return self.placed or any(each.type == SCHEDULED for each in self.status.conditions)

    @property
    def why(self) -> str:
        """Why the pod waits, from its condition."""
        return next((each.message for each in self.status.conditions if each.type == SCHEDULED), "")


Test = Callable[[TrackedPod], bool]
Placed = Callable[[int], None]
TELL = 100  # pods between two calls of `told`
_DECODE = msgspec.json.Decoder(TrackedPod).decode


class _Wait:
    def __init__(self, keys: set[str], test: Test) -> None:
        self.keys, self.test = keys, test
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def look(self, key: str, entry: TrackedPod | None) -> None:
        """Checks a changed pod. A deleted pod no longer counts."""
        if key in self.keys and (entry is None or self.test(entry)):
            self.keys.discard(key)
            if not self.keys and not self.done.done():
                self.done.set_result(None)


class PodTracker:
    """`placed` counts every pod that ever got a node; `told` is called for each hundred. The owner must call
    `close`."""

    def __init__(self, store: Store) -> None:
        self.pods: dict[str, TrackedPod] = {}
        self.placed = 0
        self.told: Placed = lambda _: None
        self._waits: list[_Wait] = []
        self._leave = store.listen(PODS, self._changed)

    def close(self) -> None:
        self._leave()

    async def until(self, keys: Collection[str], test: Test, patience: float) -> list[str]:
        """Waits until the test holds for all of these pods that still exist, for at most `patience` seconds.

        Returns the pods for which it does not hold, sorted; empty unless the time ran out.
        """
        open_keys = {key for key in keys if (entry := self.pods.get(key)) is not None and not test(entry)}
        if not open_keys:
            return []
        wait = _Wait(open_keys, test)
        self._waits.append(wait)
        try:
            async with asyncio.timeout(patience):
                await wait.done
        except TimeoutError:
            pass
        finally:
            self._waits.remove(wait)
        return sorted(wait.keys)

    def matching(self, keys: Iterable[str], labels: dict[str, str]) -> list[str]:
        """Returns those of the pods that exist and have these labels."""
        found = [(key, self.pods.get(key)) for key in keys]
        return [key for key, entry in found if entry is not None and labels.items() <= entry.metadata.labels.items()]

    def _changed(self, change: StoreChange) -> None:
        key = change.key
        if change.type == DELETED:
            self.pods.pop(key, None)
            entry = None
        else:
            entry = _DECODE(change.data)
            if entry.placed and not ((before := self.pods.get(key)) and before.placed):
                self._count()
            self.pods[key] = entry
        for wait in self._waits:
            wait.look(key, entry)

    def _count(self) -> None:
        self.placed += 1
        if not self.placed % TELL:
            self.told(TELL)
