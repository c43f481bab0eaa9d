"""Ends deleted or evicted pods after their grace period: a simulation has no kubelets to do it."""

import asyncio

import msgspec

from kubenexus.client import kinds, verbs
from kubenexus.sim.apiserver.store import DELETED, Store, StoreChange
from kubenexus.sim.virtual.in_process_client import InProcessClient

_PODS = "pods"


class _Meta(msgspec.Struct, rename="camel", frozen=True, gc=False):
    name: str
    namespace: str = ""
    uid: str = ""
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None


class _Pod(msgspec.Struct, frozen=True, gc=False):
    metadata: _Meta


_DECODE = msgspec.json.Decoder(_Pod).decode


class TerminatingPods:
    """Listens to the store from its construction until `close`.

    A pod that is gone earlier, because an agent or the scenario ended it, is not affected: the call names its UID.
    """

    def __init__(self, store: Store, api: InProcessClient) -> None:
        self._api = api
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._leave = store.listen(_PODS, self._changed)

    def close(self) -> None:
        self._leave()
        for timer in self._timers.values():
            timer.cancel()

    def _changed(self, change: StoreChange) -> None:
        # Most changes are of pods that nothing deletes: a search in the bytes costs a tenth of decoding them.
        if change.type == DELETED or b'"deletionTimestamp"' not in change.data:
            return
        meta = _DECODE(change.data).metadata
        if meta.deletion_timestamp and meta.uid not in self._timers:
            seconds = meta.deletion_grace_period_seconds or 0
            self._timers[meta.uid] = asyncio.get_running_loop().call_later(seconds, self._end, meta)

    def _end(self, meta: _Meta) -> None:
        del self._timers[meta.uid]
        self._api.now(verbs.delete(kinds.PODS, meta.namespace, meta.name, meta.uid, grace_seconds=0))
