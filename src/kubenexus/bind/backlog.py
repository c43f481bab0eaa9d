"""How far decisions may be ahead of the API server, for each namespace.

A bind counts from when it is handed over until it lands, except while it waits in a PreBind plugin. The namespaces that
have any share twice as many as there are slots, so that one with ten thousand pods, or with webhooks that take their
time, is far enough ahead while others are still decided at once. A namespace always has a few, and one whose binds
hang or fail no more than twice its slots. A job that is admitted goes whole, however large it is.

A namespace that reached its allowance is admitted again when half of that has landed, not for each bind.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from kubenexus.client.fair_queue import FairQueue

AHEAD: Final = 2  # times the slots
FEW: Final = 8  # binds that each namespace may have under way, however many namespaces have some

UNANSWERED = (
    'running Bind plugin "DefaultBinder": the API server has not answered earlier binds of this namespace yet; an '
    "admission webhook may hold them"
)
FAILING = "few binds of this namespace are tried at a time, since earlier ones failed: "


class NamespaceBacklog:
    """`wake` is called when a namespace may be admitted again."""

    def __init__(self, slots: FairQueue[Any], limit: int, wake: Callable[[], None]) -> None:
        self._slots, self._limit, self._wake = slots, limit, wake
        self._binds: Counter[str] = Counter()
        self._freed: set[str] = set()

    def begun(self, namespace: str, binds: int) -> None:
        self._binds[namespace] += binds

    def ended(self, namespace: str, binds: int) -> None:
        self._binds[namespace] -= binds
        if not self._binds[namespace]:
            del self._binds[namespace]
        self._freed.add(namespace)
        if self.headroom(namespace):
            self._wake()

    def admits(self, namespace: str) -> bool:
        """Whether another job of this namespace may be decided now."""
        return self._binds[namespace] < self._allowance(namespace)

    def headroom(self, namespace: str) -> int:
        """How many of a namespace that was not admitted may be tried now."""
        allowance, binds = self._allowance(namespace), self._binds[namespace]
        return allowance - binds if binds <= allowance // 2 else 0

    @property
    def any_freed(self) -> bool:
        """Whether jobs that were set aside may be tried now."""
        return bool(self._freed)

    def freed(self) -> list[str]:
        """The namespaces of which binds ended, or of which more may be tried, since this was last asked."""
        freed, self._freed = self._freed, set()
        return sorted(freed)

    def more(self, namespace: str) -> None:
        """Other jobs of the namespace are still set aside. Those that were tried may come to no bind, whose end would
        free the next ones."""
        if self.headroom(namespace):
            self._freed.add(namespace)

    def stuck(self, namespace: str) -> bool:
        """Whether it may take long until a bind of this namespace lands."""
        return self._slots.stuck(namespace)

    def problem(self, namespace: str) -> str:
        """What is wrong with the binds of a namespace that is not admitted; "" if it only has many."""
        if not self._slots.slow(namespace):
            return ""
        why = self._slots.failing(namespace)
        return FAILING + why if why else UNANSWERED

    def _allowance(self, namespace: str) -> int:
        if self._slots.slow(namespace):
            return AHEAD * self._slots.share(namespace)
        others = len(self._binds) - (namespace in self._binds)
        return max(min(FEW, AHEAD * self._limit), AHEAD * self._limit // (others + 1))
