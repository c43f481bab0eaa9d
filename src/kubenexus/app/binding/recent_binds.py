"""Pods that this process bound: which the watch has yet to confirm, and which ended before they ran."""

import asyncio
from collections import OrderedDict, deque
from typing import NamedTuple

from kubenexus.api.core import Pod
from kubenexus.base.clock import Clock
from kubenexus.state.ledger import Ledger
from kubenexus.state.pods import PodStage

CONFIRMATION_TIMEOUT = 30.0  # seconds until the bind verifier GETs a pod that the watch has not confirmed
MAX_REMEMBERED = 16_384  # pods bound last; a kubelet that rejects one does so within seconds
MAX_VANISHED = 1024  # pods to be examined; beyond it the oldest are dropped, since the last ones show as much


class UnconfirmedBind(NamedTuple):
    """A pod that is bound according to the API server's answer. Names only: there may be thousands."""

    namespace: str
    name: str
    uid: str

    @staticmethod
    def of(pod: Pod) -> "UnconfirmedBind":
        return UnconfirmedBind(pod.metadata.namespace, pod.metadata.name, pod.metadata.uid)

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


class RecentBinds:
    """Pods that this process bound. Written by the bind results and the event handlers, read by the bind verifier.
    `vanished` are the pods for it to examine; `work` is set when there are some."""

    def __init__(self, ledger: Ledger, clock: Clock) -> None:
        self._ledger, self._clock = ledger, clock
        self._bound: OrderedDict[str, None] = OrderedDict()  # UIDs
        self._unconfirmed: deque[tuple[float, UnconfirmedBind]] = deque()
        self.vanished: deque[Pod] = deque(maxlen=MAX_VANISHED)
        self.work = asyncio.Event()

    def add(self, uid: str) -> None:
        self._bound[uid] = None
        if len(self._bound) > MAX_REMEMBERED:
            self._bound.popitem(last=False)

    def remove(self, uid: str) -> None:
        self._bound.pop(uid, None)

    def __contains__(self, uid: str) -> bool:
        """Whether this process bound the pod, as far as it remembers."""
        return uid in self._bound

    def pod_vanished(self, pod: Pod) -> None:
        """Records that a bound pod ended before it ran. If this process bound it, its kubelet may have rejected it."""
        if pod.metadata.uid in self:
            self.vanished.append(pod)
            self.work.set()

    def expect_confirmation(self, pod: UnconfirmedBind) -> None:
        """Records a bind that the watch has to confirm within `CONFIRMATION_TIMEOUT`."""
        self._unconfirmed.append((self._clock.now() + CONFIRMATION_TIMEOUT, pod))

    def unconfirmed_too_long(self) -> list[UnconfirmedBind]:
        """Returns the binds whose time is over and that the ledger still has as Assumed; each is returned once."""
        now, late = self._clock.now(), []
        while self._unconfirmed and self._unconfirmed[0][0] <= now:
            _, pod = self._unconfirmed.popleft()
            record = self._ledger.pods.get(pod.key)
            if record is not None and record.uid == pod.uid and record.stage is PodStage.ASSUMED:
                late.append(pod)
        return late
