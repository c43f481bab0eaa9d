"""`NamespaceBacklog`: how far decisions may be ahead of the API server.

A bind is under way from when it is submitted until it lands, except while it waits in a PreBind plugin. As in
kube-scheduler, decisions run far ahead of binds: jobs are decided in the order of their priorities, however slowly
binds are answered. The bounds are there for memory, a few kilobytes for each bind.

| namespaces of speed | binds under way                                                                           |
|---------------------|-------------------------------------------------------------------------------------------|
| QUICK               | `max_under_way` together; beyond that no job is decided at all (`full`)                   |
| UNKNOWN             | four times `max_under_way` together; beyond that no job is decided at all (`full`)        |
| SLOW                | `max_under_way` together; beyond that each namespace has an equal share                   |
| STUCK               | each namespace twice its slots: its jobs would keep capacity of nodes, and come to nothing |

A quick or unknown namespace is never set aside: jobs of less priority would pass it and take the capacity that it
needs. Their own webhooks, not other tenants, make namespaces slow or stuck, so others may pass these. Unknown
namespaces that hang stop all decisions only with 65,536 binds, and only until a few of them are known as stuck: those
with the most binds are tried among the first (`client.namespace_calls.LARGE`). A job that is admitted goes whole,
however large it is. A namespace that reached its allowance is admitted again when half of that has a result, not for
each bind.
"""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final

from kubenexus.client.fair_queue import FairQueue
from kubenexus.client.namespace_calls import Speed

MAX_UNDER_WAY: Final = 16_384  # binds, of all namespaces that are answered
UNKNOWN_FACTOR: Final = 4  # times `max_under_way`, binds of all namespaces that were never answered
FEW_BINDS: Final = 8  # binds that each namespace may have under way, however many namespaces have some
AHEAD: Final = 2  # times its slots, of a namespace whose binds hang or fail

UNANSWERED = (
    'running Bind plugin "DefaultBinder": the API server has not answered earlier binds of this namespace yet; an '
    "admission webhook may hold them"
)
FAILING = "few binds of this namespace are tried at a time, since earlier ones failed: "

_NOT_SET_ASIDE: Final = (Speed.QUICK, Speed.UNKNOWN)


class NamespaceBacklog:
    """`wake` is called when a namespace that was not admitted may be, or when `full` has ended."""

    def __init__(self, slots: FairQueue[Any], wake: Callable[[], None], most: int = MAX_UNDER_WAY) -> None:
        self._slots, self._wake, self.max_under_way = slots, wake, most
        self._binds: Counter[str] = Counter()
        self._pools: dict[str, Speed] = {}  # by namespace with binds: where these are counted
        self._pool_binds: Counter[Speed] = Counter()
        self._pool_sizes: Counter[Speed] = Counter()  # namespaces
        self._held: set[str] = set()  # namespaces with jobs that were not admitted
        self._freed: set[str] = set()  # of these, those that may be tried again

    @property
    def full(self) -> bool:
        """Whether no job may be decided until some binds have a result. `wake` is called then."""
        return any(self._unused(speed) <= 0 for speed in _NOT_SET_ASIDE)

    def begun(self, namespace: str, binds: int) -> None:
        self._count(namespace, binds)

    def ended(self, namespace: str, binds: int) -> None:
        was_full = self.full
        self._count(namespace, -binds)
        self._release(namespace, was_full=was_full)

    @contextlib.contextmanager
    def set_apart(self, namespace: str, binds: int) -> Iterator[None]:
        """A context in which binds that were begun are not under way: their job waits in a PreBind plugin."""
        self.ended(namespace, binds)
        try:
            yield
        finally:
            self.begun(namespace, binds)

    def admits(self, namespace: str) -> bool:
        """Whether another job of this namespace may be decided now."""
        return self._binds[namespace] < self._allowance(namespace)

    def hold(self, namespace: str) -> None:
        """Records that a job of the namespace was not admitted, and others are not tried until `take_freed` returns
        the namespace. That need not be the end of a bind: jobs that are tried next may come to none."""
        self._held.add(namespace)
        if self.headroom(namespace):
            self._freed.add(namespace)

    def headroom(self, namespace: str) -> int:
        """How many jobs of a namespace that was not admitted may be tried now."""
        if self._slots.speed(namespace) in _NOT_SET_ASIDE:
            return self.max_under_way  # `full` is the bound
        allowance, binds = self._allowance(namespace), self._binds[namespace]
        return allowance - binds if binds <= allowance // 2 else 0

    @property
    def any_freed(self) -> bool:
        """Whether jobs that were not admitted may be tried now."""
        return bool(self._freed)

    def take_freed(self) -> list[str]:
        """Returns the namespaces of which jobs that were not admitted may be tried now. They are no longer held."""
        freed, self._freed = sorted(self._freed), set()
        self._held.difference_update(freed)
        return freed

    def reason_not_to_send(self, namespace: str) -> str:
        """Why a bind that was decided before its namespace began to fail is not to be sent, "" if it is. Other binds of
        the namespace are tried first, and this one would only keep its capacity meanwhile."""
        failing = self._slots.failing(namespace) and self._slots.waits(namespace) >= AHEAD
        return self.problem(namespace) if failing else ""

    def problem(self, namespace: str) -> str:
        """What is wrong with the binds of a namespace that is not admitted; "" if it only has many."""
        if not self._slots.stuck(namespace):
            return ""
        why = self._slots.failing(namespace)
        return FAILING + why if why else UNANSWERED

    # --- how many -------------------------------------------------------------------------------------------------

    def _allowance(self, namespace: str) -> int:
        if self._slots.stuck(namespace):
            return AHEAD * self._slots.share(namespace)
        speed, binds = self._slots.speed(namespace), self._binds[namespace]
        unused = self._unused(speed)
        if speed in _NOT_SET_ASIDE:
            return binds + max(0, unused)
        others = self._pool_sizes[speed] - (self._pools.get(namespace) is speed)
        return max(FEW_BINDS, self.max_under_way // (others + 1), binds + unused)

    def _unused(self, speed: Speed) -> int:
        factor = UNKNOWN_FACTOR if speed is Speed.UNKNOWN else 1
        return factor * self.max_under_way - self._pool_binds[speed]

    def speed_changed(self, namespace: str) -> None:
        """Counts the binds of a namespace where they belong by its speed now."""
        if namespace in self._pools or namespace in self._held:
            was_full = self.full
            self._count(namespace, 0)
            self._release(namespace, was_full=was_full)

    def _count(self, namespace: str, binds: int) -> None:
        before, old = self._binds[namespace], self._pools.pop(namespace, None)
        if old is not None:
            self._pool_binds[old] -= before
            self._pool_sizes[old] -= 1
        after = before + binds
        if after:
            pool = self._pools[namespace] = self._slots.speed(namespace)
            self._binds[namespace] = after
            self._pool_binds[pool] += after
            self._pool_sizes[pool] += 1
        else:
            del self._binds[namespace]

    def _release(self, namespace: str, *, was_full: bool) -> None:
        freed = namespace in self._held and bool(self.headroom(namespace))
        if freed:
            self._freed.add(namespace)
        if freed or (was_full and not self.full):
            self._wake()
