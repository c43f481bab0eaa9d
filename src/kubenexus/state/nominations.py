"""Capacity on nodes that is reserved for pods which do not count there yet, by node and by pod."""

from collections.abc import Callable, Iterator, KeysView

from kubenexus.state.pods import PodRecord


class Nominations:
    """The nominated pods of each node. A pod is nominated to at most one node. Only the ledger writes here.
    `on_change` is called with each record that is added (+1) or removed (-1)."""

    def __init__(self, on_change: Callable[[PodRecord, int], None]) -> None:
        self._on_change = on_change
        self.by_node: dict[str, dict[str, PodRecord]] = {}
        self._node_of: dict[str, str] = {}

    def __iter__(self) -> Iterator[str]:
        """Iterates over the keys of the pods."""
        return iter(self._node_of)

    @property
    def keys(self) -> KeysView[str]:
        """The keys of all nominated pods."""
        return self._node_of.keys()

    def on(self, node: str) -> dict[str, PodRecord]:
        """Returns the records on a node by key, in order of arrival."""
        return self.by_node.get(node, {})

    def of(self, key: str) -> PodRecord | None:
        """Returns the record of a pod, or None."""
        node = self._node_of.get(key)
        return None if node is None else self.by_node[node][key]

    def node_of(self, key: str) -> str:
        """Returns the node of a pod, or ""."""
        return self._node_of.get(key, "")

    def add(self, record: PodRecord) -> bool:
        """Adds or replaces a record. Returns whether anything changed."""
        if self.on(record.node).get(record.key) == record:
            return False
        self.remove(record.key)
        self.by_node.setdefault(record.node, {})[record.key] = record
        self._node_of[record.key] = record.node
        self._on_change(record, +1)
        return True

    def remove(self, key: str) -> bool:
        """Removes a pod's record. Returns whether there was one."""
        node = self._node_of.pop(key, None)
        if node is None:
            return False
        self._on_change(self.by_node[node].pop(key), -1)
        if not self.by_node[node]:
            del self.by_node[node]
        return True
