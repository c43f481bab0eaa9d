"""NodeResourceTopologies that wait to be read: what nodes report again, some at a time.

Every node reports about its NUMA nodes every few seconds, and to read one report takes up to a millisecond: it is
compared with the pods that were placed there. A newer report of a node that has one is no reason for decisions to wait,
as it could have come a little later. So it waits here until the scheduling loop takes it, and one that is newer still
takes its place. The first report of a node, and that it is gone, are passed on at once.
"""

from collections.abc import Callable
from itertools import islice

from kubenexus.api.devices.node_resource_topology import NodeResourceTopology


class NodeReports:
    """By node: the last report, if it has not been read. `read` and `forget` pass a report on, or that it is gone;
    `is_known` tells whether a report of a node was passed on."""

    def __init__(
        self,
        read: Callable[[NodeResourceTopology], None],
        forget: Callable[[str], None],
        is_known: Callable[[str], bool],
    ) -> None:
        self._read, self._forget, self._is_known = read, forget, is_known
        self._waiting: dict[str, NodeResourceTopology] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def on_update(self, report: NodeResourceTopology) -> None:
        node = report.metadata.key
        if self._is_known(node):
            self._waiting[node] = report
        else:
            self._read(report)

    def on_delete(self, node: str) -> None:
        self._waiting.pop(node, None)
        self._forget(node)

    def read_some(self, most: int) -> list[Exception]:
        """Passes on the reports that have waited longest, at most so many. Returns what was raised for any of them: the
        others are read all the same."""
        problems = list[Exception]()
        for node in list(islice(self._waiting, most)):
            try:
                self._read(self._waiting.pop(node))
            except Exception as problem:
                problems.append(problem)
        return problems
