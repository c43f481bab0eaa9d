"""Who counts on which node. By the node's name: a pod may be bound to a node we have not seen, or no longer see."""

from collections.abc import Collection

from kubenexus.state.pods import PodRecord


class PodsByNode:
    """Only the ledger writes here. A pod lives on one node."""

    def __init__(self) -> None:
        self._on: dict[str, dict[str, PodRecord]] = {}

    def on(self, node: str) -> Collection[PodRecord]:
        """In the order they came."""
        return self._on.get(node, {}).values()

    def put(self, record: PodRecord) -> None:
        self._on.setdefault(record.node, {})[record.key] = record

    def take(self, record: PodRecord) -> None:
        there = self._on[record.node]
        del there[record.key]
        if not there:
            del self._on[record.node]
