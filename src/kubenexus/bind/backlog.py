"""How far decisions may be ahead of the API server, for each namespace.

A bind counts from when it is handed over until it lands, except while it waits in a PreBind plugin. As in
kube-scheduler decisions run far ahead, so that jobs are decided in the order of their priorities however slowly binds
are answered; what bounds them is memory, a few kilobytes for each. The namespaces that have any share that bound.

A namespace whose binds hang or fail has no more than twice its slots: its jobs would keep room on nodes, and come to
nothing. A job that is admitted goes whole, however large it is.

A namespace that reached its allowance is admitted again when half of that has landed, not for each bind.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from kubenexus.client.fair_queue import FairQueue

MAX_UNDER_WAY: Final = 16_384  # binds, of all namespaces that are answered
FEW_BINDS: Final = 8  # binds that each namespace may have under way, however many namespaces have some
AHEAD: Final = 2  # times its slots, of a namespace whose binds hang or fail

UNANSWERED = (
    'running Bind plugin "DefaultBinder": the API server has not answered earlier binds of this namespace yet; an '
    "admission webhook may hold them"
)
FAILING = "few binds of this namespace are tried at a time, since earlier ones failed: "


class NamespaceBacklog:
    """`wake` is called when a namespace may be admitted again."""

    def __init__(self, slots: FairQueue[Any], wake: Callable[[], None], most: int = MAX_UNDER_WAY) -> None:
        self._slots, self._wake, self.max_under_way = slots, wake, most
        self._binds: Counter[str] = Counter()
        self._held: set[str] = set()  # namespaces with jobs that were not admitted
        self._freed: set[str] = set()  # of these, those that may be tried again

    def begun(self, namespace: str, binds: int) -> None:
        self._binds[namespace] += binds

    def ended(self, namespace: str, binds: int) -> None:
        self._binds[namespace] -= binds
        if not self._binds[namespace]:
            del self._binds[namespace]
        if namespace in self._held and self.headroom(namespace):
            self._freed.add(namespace)
            self._wake()

    def admits(self, namespace: str) -> bool:
        """Whether another job of this namespace may be decided now."""
        return self._binds[namespace] < self._allowance(namespace)

    def hold(self, namespace: str) -> None:
        """A job of the namespace was not admitted, and others are not tried: `take_freed` says when they may be. That
        need not be the end of a bind: those that are tried next may come to none."""
        self._held.add(namespace)
        if self.headroom(namespace):
            self._freed.add(namespace)

    def headroom(self, namespace: str) -> int:
        """How many of a namespace that was not admitted may be tried now."""
        allowance, binds = self._allowance(namespace), self._binds[namespace]
        return allowance - binds if binds <= allowance // 2 else 0

    @property
    def any_freed(self) -> bool:
        """Whether jobs that were not admitted may be tried now."""
        return bool(self._freed)

    def take_freed(self) -> list[str]:
        """The namespaces of which jobs that were not admitted may be tried now. They are not held any more."""
        freed, self._freed = sorted(self._freed), set()
        self._held.difference_update(freed)
        return freed

    def reason_not_to_send(self, namespace: str) -> str:
        """Why a bind that was decided before its namespace began to fail is not to be sent: others of it are tried
        first, and it would only keep its room meanwhile. "" if it is."""
        failing = self._slots.failing(namespace) and self._slots.waits(namespace) >= AHEAD
        return self.problem(namespace) if failing else ""

    def problem(self, namespace: str) -> str:
        """What is wrong with the binds of a namespace that is not admitted; "" if it only has many."""
        if not self._slots.stuck(namespace):
            return ""
        why = self._slots.failing(namespace)
        return FAILING + why if why else UNANSWERED

    def _allowance(self, namespace: str) -> int:
        if self._slots.stuck(namespace):
            return AHEAD * self._slots.share(namespace)
        stuck = sum(each in self._binds for each in self._slots.stuck_namespaces)
        others = len(self._binds) - stuck - (namespace in self._binds)
        return max(FEW_BINDS, self.max_under_way // (others + 1))
