"""Pod records by the name of their node. The node itself may not be known yet, or no longer."""

from collections.abc import Collection

from kubenexus.state.pods import PodRecord


class PodsByNode:
    """The records of each node; a pod is on one node. Only the ledger writes here."""

    def __init__(self) -> None:
        self._on: dict[str, dict[str, PodRecord]] = {}

    def on(self, node: str) -> Collection[PodRecord]:
        """Returns the records of a node, in order of arrival."""
        return self._on.get(node, {}).values()

    def put(self, record: PodRecord) -> None:
        self._on.setdefault(record.node, {})[record.key] = record

    def take(self, record: PodRecord) -> None:
        there = self._on[record.node]
        del there[record.key]
        if not there:
            del self._on[record.node]
