"""Reads what nodes report about their NUMA nodes into the columns."""

import math
from collections.abc import Iterable, Mapping

from kubenexus.api.core import Node
from kubenexus.api.devices.device import NodeDevices
from kubenexus.api.devices.node_resource_topology import NodeResourceTopology
from kubenexus.api.numa.labelled_node import NOTHING, labelled_bandwidths, labelled_topology, with_devices
from kubenexus.api.numa.node_options import node_options
from kubenexus.api.numa.reported_node import NO_BANDWIDTHS, ReportedNode, Totals, reported_node, zones_problem
from kubenexus.api.quantity import to_units
from kubenexus.api.resource_names import is_extended
from kubenexus.base.errors import Malformed
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.numa.columns import RowNuma
from kubenexus.state.numa.holdings import usage_key
from kubenexus.state.numa.uncounted import uncounted
from kubenexus.state.pods import PodRecord, PodStage


class NumaReports:
    """The ledger owns it. Reading a report takes up to a few milliseconds, so it is done in portions, as for devices
    (`Ledger.read_devices`)."""

    def __init__(self, nodes: NodeColumns, enabled: bool = True) -> None:
        self._nodes, self._enabled = nodes, enabled
        self._unhealthy: dict[str, dict[str, int]] = {}  # by node: capacity of resources with unhealthy devices
        self._labelled: dict[str, NodeResourceTopology] = {}  # by node: NUMA nodes by its labels and annotations
        self._bandwidths: dict[str, Mapping[int, int]] = {}  # by node: MB/s of its NUMA nodes' memory

    def set_node(self, node: Node) -> bool:
        """Records what a Node tells beside its report. Returns whether what its labels name of NUMA nodes changed."""
        self._set_capacity(node)
        name, labelled = node.metadata.name, labelled_topology(node.metadata.labels, node.metadata.annotations)
        before = self._labelled.pop(name, NOTHING)
        if labelled.zones:
            self._labelled[name] = labelled
        bandwidths = labelled_bandwidths(node.metadata.labels, node.metadata.annotations)
        known = self._bandwidths.pop(name, NO_BANDWIDTHS)
        if bandwidths:
            self._bandwidths[name] = bandwidths
        return labelled != before or bandwidths != known

    def _set_capacity(self, node: Node) -> None:
        """Records the capacity of a node's extended resources that is above the allocatable amount."""
        capacity, offered = node.status.capacity, node.status.allocatable
        if capacity == offered:
            return
        found = {
            name: amount
            for name, text in capacity.items()
            if text != offered.get(name) and is_extended(name) and (amount := _units(text)) > 0
        }
        if found or node.metadata.name in self._unhealthy:
            self._unhealthy[node.metadata.name] = found

    def forget(self, node: str) -> None:
        self._unhealthy.pop(node, None)
        self._labelled.pop(node, None)
        self._bandwidths.pop(node, None)

    def read(
        self, node: str, nrt: NodeResourceTopology | None, devices: NodeDevices, residents: Iterable[PodRecord]
    ) -> bool:
        """Reads the report of a node into its row, or what its labels name. Returns whether there is or was any."""
        row = self._nodes.row_of.get(node) if self._enabled else None
        if row is None:
            return False
        numa, labelled = self._nodes.numa, self._labelled.get(node)
        before, contradicted = numa.of_row(row), row in numa.contradicted
        if nrt is not None:
            changed = self._set(row, node, nrt, residents)
        elif labelled is not None:
            changed = self._set_labelled(row, node, with_devices(labelled, devices), residents)
        else:
            changed = numa.clear(row)
        if changed:
            self._record(row, before, contradicted)
        return changed

    def _record(self, row: int, before: RowNuma | None, contradicted: bool) -> None:
        """Records what a report changed. Nodes report every few seconds, and mostly what was predicted: then no class
        computes the row again. Another use counts like pods that came or went, not as a change of the node, which all
        plugins and many caches look at."""
        now = self._nodes.numa.of_row(row)
        if before is None or now is None or not _is_same_node(before, now):
            self._nodes.node_changes.record(row)
        elif contradicted or before.kept != now.kept or usage_key(before.usage) != usage_key(now.usage):
            self._nodes.usage_changes.record(row)

    def _set(self, row: int, node: str, nrt: NodeResourceTopology, residents: Iterable[PodRecord]) -> bool:
        wanting = [record for record in residents if record.numa is not None]
        pods = sorted(wanting, key=lambda record: (record.started_at, record.assumed_at, record.key))
        started = sum(map(is_seen, pods))
        reported = self._reported(row, node, nrt, pods[:started])
        if isinstance(reported, str):
            changed = self._nodes.numa.clear(row)
            self._nodes.numa.unusable[row] = reported
            return changed
        demands = [record.numa for record in pods if record.numa is not None]
        later = uncounted(reported.machine, reported.visible, demands, started)
        seen = [record for number, record in enumerate(pods) if number not in later]
        self._nodes.numa.set(row, reported, seen, [pods[number] for number in sorted(later)])
        return True

    def _set_labelled(self, row: int, node: str, named: NodeResourceTopology, residents: Iterable[PodRecord]) -> bool:
        """Counts all pods as the kubelet would align them that aligns them as far as it can."""
        wanting = [record for record in residents if record.numa is not None]
        reported = self._reported(row, node, named, (), judged=False)
        if isinstance(reported, str):
            return self._nodes.numa.clear(row)
        self._nodes.numa.set(
            row, reported, (), sorted(wanting, key=lambda each: (each.started_at, each.assumed_at, each.key))
        )
        return True

    def _reported(
        self, row: int, node: str, nrt: NodeResourceTopology, seen: Iterable[PodRecord], *, judged: bool = True
    ) -> ReportedNode | str:
        """Returns what a node tells, or why that is nothing to predict from."""
        resources = self._nodes.resources
        offers = {name: resources.alloc.item(index, row) for name, index in resources.index.items() if "/" in name}
        used = {name: resources.used.item(index, row) for name, index in resources.index.items() if "/" in name}
        allocatable = {name: amount for name, amount in offers.items() if amount}
        totals = Totals({**allocatable, **self._unhealthy.get(node, {})}, allocatable, used)
        demands = [record.numa for record in seen if record.numa is not None]
        try:
            options = node_options(self._nodes.labels.of_row(row))
            bandwidths = self._bandwidths.get(node, NO_BANDWIDTHS)
            found = reported_node(nrt, totals, demands, options, hidden=False, judged=judged, bandwidths=bandwidths)
        except Malformed as problem:
            return str(problem)
        return zones_problem(nrt) if found is None else found


def is_seen(record: PodRecord) -> bool:
    """Returns whether a report that arrives now probably counts a pod: its kubelet has started it."""
    return record.stage is PodStage.BOUND and record.started_at < math.inf


def _is_same_node(before: RowNuma, now: RowNuma) -> bool:
    """Returns whether two pictures of a row differ in nothing but what is in use."""
    one, other = before.reported, now.reported
    same = before.layout == now.layout and one.machine is other.machine and one.judged == other.judged
    return same and one.ids == other.ids and one.bandwidths == other.bandwidths


def _units(text: object) -> int:
    try:
        return to_units(text)  # type: ignore[arg-type]
    except Malformed:
        return 0
