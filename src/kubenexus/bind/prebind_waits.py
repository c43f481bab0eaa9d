"""Pods that wait in a PreBind plugin (for their volumes, say): how many, and of which namespace.

Such a wait costs memory alone, and may take ten minutes: it does not hold back other jobs. It is bounded for each
namespace, and where all together wait in great numbers each namespace has an equal share, so that claims that are
never served cost their own namespace's pods with volumes a delay, and no other pod anything.
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
        """One job, for as long as so many of its pods wait there."""
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
        """How many pods of a namespace may wait there, if that many do; else 0. In round numbers: a sentence that
        says it stays the same from try to try."""
        own = self._pods[plugin, namespace]
        share = (
            MAX_PER_NAMESPACE
            if self._all < MAX_WAITING
            else min(MAX_PER_NAMESPACE, max(1, MAX_WAITING // len(self._pods)))
        )
        return share if own >= share else 0
