"""`PreBindWaits`: how many pods of each namespace wait in each PreBind plugin, for volumes for example.

Such a wait costs only memory and may take ten minutes, so it does not hold back other jobs. The number is bounded for
each namespace. If many pods wait in all, each namespace has an equal share. Claims that are never served thus delay
only pods with volumes of their own namespace.
"""

import contextlib
from collections import Counter
from collections.abc import Iterator

MAX_PER_NAMESPACE = 1024  # pods of one namespace in one plugin; the job that reaches it goes whole
MAX_WAITING = 16_384  # pods in all, from which on each namespace has an equal share: a bound on memory


class PreBindWaits:
    def __init__(self) -> None:
        self._pods: Counter[tuple[str, str]] = Counter()  # by plugin and namespace
        self._all = 0
        self.jobs = 0

    @contextlib.contextmanager
    def waiting(self, plugin: str, namespace: str, pods: int) -> Iterator[None]:
        """A context in which so many pods of one job count as waiting."""
        key = (plugin, namespace)
        self._pods[key] += pods
        self._all += pods
        self.jobs += 1
        try:
            yield
        finally:
            self.jobs -= 1
            self._all -= pods
            self._pods[key] -= pods
            if not self._pods[key]:
                del self._pods[key]

    def reached(self, plugin: str, namespace: str) -> int:
        """How many pods of a namespace may wait there, if that many do; else 0. The bound and not the count, so that
        messages stay the same from try to try."""
        own = self._pods[plugin, namespace]
        share = (
            MAX_PER_NAMESPACE
            if self._all < MAX_WAITING
            else min(MAX_PER_NAMESPACE, max(1, MAX_WAITING // len(self._pods)))
        )
        return share if own >= share else 0
