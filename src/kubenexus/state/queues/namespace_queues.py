"""Which queue takes the jobs of a namespace. The first of these that names a queue which exists:

    1. the label `scheduling.kubenexus.io/queue` of the namespace
    2. a queue that lists the namespace (`spec.namespaces`)
    3. a queue whose `spec.namespaceSelector` selects the namespace
    4. the queue `default`

Of several queues the first by name. Pods have no say: a tenant who cannot edit namespaces cannot change queues.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from kubenexus.api.keys.reading import read_key
from kubenexus.api.keys.tenant import NAMESPACE_QUEUE
from kubenexus.api.queues.settings import DEFAULT_QUEUE, QueueSettings
from kubenexus.api.selectors import NOTHING

MAX_SELECTORS: Final = 100  # queues that select namespaces by labels, the first by name: 30 us for a namespace
_NO_LABELS: Final[Mapping[str, str]] = {}


class NamespaceQueues:
    """The queue of each namespace, worked out when it is first asked for."""

    def __init__(self) -> None:
        self.labels: dict[str, Mapping[str, str]] = {}  # of the namespaces that there are
        self._queues: frozenset[str] = frozenset()
        self._listed: dict[str, str] = {}
        self._selecting: list[QueueSettings] = []
        self._known: dict[str, str] = {}

    def set_queues(self, queues: Iterable[QueueSettings]) -> list[str]:
        """Replaces the queues. Returns those whose selectors do not count, since there are too many."""
        ordered = sorted(queues, key=lambda queue: queue.name)
        self._queues = frozenset(queue.name for queue in ordered)
        self._listed = {name: queue.name for queue in reversed(ordered) for name in queue.namespaces}
        selecting = [queue for queue in ordered if queue.selector is not NOTHING]
        self._selecting = selecting[:MAX_SELECTORS]
        self._known = {}
        return [queue.name for queue in selecting[MAX_SELECTORS:]]

    def set_namespace(self, name: str, labels: Mapping[str, str] | None) -> bool:
        """Sets the labels of a namespace (None: it is gone). Returns whether its queue may have changed."""
        before = self.labels.get(name)
        if labels is None:
            self.labels.pop(name, None)
        else:
            self.labels[name] = labels
        if before == labels:
            return False
        was = self._known.pop(name, None)
        return was is not None and was != self.queue_of(name)

    def queue_of(self, namespace: str) -> str:
        """Returns the name of the namespace's queue."""
        known = self._known.get(namespace)
        if known is None:
            known = self._known[namespace] = self._find(namespace)
        return known

    def forget(self, namespace: str) -> None:
        """Drops what is known of a namespace that is gone and has no pods."""
        self._known.pop(namespace, None)

    def _find(self, namespace: str) -> str:
        labels = self.labels.get(namespace, _NO_LABELS)
        named = read_key(NAMESPACE_QUEUE, labels, {}).value
        if named in self._queues:
            return str(named)
        if namespace in self._listed:
            return self._listed[namespace]
        for queue in self._selecting:
            if namespace in self.labels and queue.selector.matches(labels):
                return queue.name
        return DEFAULT_QUEUE
