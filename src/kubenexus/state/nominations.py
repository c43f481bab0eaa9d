"""Room on nodes that is spoken for by pods that do not count there yet: by node, and by pod."""

from collections.abc import Callable, Iterator

from kubenexus.state.pods import PodRecord


class Nominations:
    """Only the ledger writes here. A pod speaks for one node at a time; `told` hears of each that begins (+1) or ends
    (-1) to."""

    def __init__(self, told: Callable[[PodRecord, int], None]) -> None:
        self._told = told
        self.by_node: dict[str, dict[str, PodRecord]] = {}
        self._node_of: dict[str, str] = {}

    def __iter__(self) -> Iterator[str]:
        """The keys of the pods."""
        return iter(self._node_of)

    def on(self, node: str) -> dict[str, PodRecord]:
        """By key, in the order they came."""
        return self.by_node.get(node, {})

    def of(self, key: str) -> PodRecord | None:
        """What a pod speaks for."""
        node = self._node_of.get(key)
        return None if node is None else self.by_node[node][key]

    def add(self, record: PodRecord) -> bool:
        """Whether that was news."""
        if self.on(record.node).get(record.key) == record:
            return False
        self.remove(record.key)
        self.by_node.setdefault(record.node, {})[record.key] = record
        self._node_of[record.key] = record.node
        self._told(record, +1)
        return True

    def remove(self, key: str) -> bool:
        """Whether there was anything to take."""
        node = self._node_of.pop(key, None)
        if node is None:
            return False
        self._told(self.by_node[node].pop(key), -1)
        if not self.by_node[node]:
            del self.by_node[node]
        return True
