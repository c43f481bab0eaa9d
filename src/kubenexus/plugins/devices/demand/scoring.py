"""The points of a placement by what pods are expected to ask for.

A whole GPU that is expected to stay idle costs `PER_GPU` points, in steps of a hundredth of a GPU. With the weight of
ResourceFragmentationScore (5) that is 4,000 points of the total: two and a half times the most that the hardware tier
of a tenant counts by default, and five times the most that a preferred node affinity does. A stated tier counts more
than all of it (`tenant.hardware_affinity`).
"""

from typing import Any, Final

import numpy as np

from kubenexus.api.devices.device_share import WHOLE
from kubenexus.api.resource_names import CPU
from kubenexus.base.arrays import IntColumn
from kubenexus.framework.pod_class import PodClass
from kubenexus.plugins.devices.demand.expected_idle import FillTables, slot_losses, slot_losses_of_row
from kubenexus.plugins.devices.demand.node_states import gpu_types
from kubenexus.plugins.devices.demand.states_after import Wanted, states, states_of_row, wanted_of_node
from kubenexus.plugins.devices.request import DeviceRequest
from kubenexus.state.demand import Demand
from kubenexus.state.view import Nodes, OneNode

PER_GPU: Final = 800
STEP: Final = 10  # thousandths of a GPU
MIDDLE: Final = 10 * PER_GPU  # points of a placement that costs nothing
WITHOUT_GPUS: Final = 100  # more for pods without GPUs on nodes without GPUs
_PER_STEP: Final = PER_GPU * STEP // WHOLE
# As arrays: NumPy takes its time to look at a Python number.
_STEP, _HALF, _POINTS_OF_STEP = np.array(float(STEP)), np.array(0.5), np.array(float(_PER_STEP))
_NOTHING, _MIDDLE, _MOST = np.array(0.0), np.array(float(MIDDLE)), np.array(2.0 * MIDDLE)


class DemandScore:
    """Scores placements by a `Demand`. It keeps the tables of the last mix, which follow from the mix alone."""

    def __init__(self) -> None:
        self._tables: FillTables | None = None

    def score(self, pod: PodClass, request: DeviceRequest | None, nodes: Nodes, demand: Demand) -> IntColumn:
        """Returns the points of rows. Rows that cannot take the pod have any."""
        tables, wanted = self._tables_of(demand), wanted_of(pod, request)
        (found, cpu), priced = states(wanted, nodes), bool(demand.type_prices and wanted.gpus.gpus)
        codes = _codes(tables, nodes) if priced or not tables.alike else None
        before, after = tables.expected(codes, found, cpu)
        loss = after - before
        loss += slot_losses(demand, wanted, found[0], cpu)
        if priced:
            loss += type_prices(demand, tables)[codes] * (wanted.gpus.gpus * wanted.gpus.milli / WHOLE)
        loss /= _STEP
        loss += _HALF
        points = np.floor(loss, out=loss)
        points *= _POINTS_OF_STEP
        np.subtract(_MIDDLE, points, out=points)
        np.maximum(points, _NOTHING, out=points)
        total: IntColumn = np.minimum(points, _MOST, out=points).astype(np.int32)
        if request is None:
            total[nodes.devices.offered("") == 0] += WITHOUT_GPUS
        return total

    def score_row(self, pod: PodClass, request: DeviceRequest | None, node: OneNode, demand: Demand) -> int:
        """The same for one row."""
        tables, wanted = self._tables_of(demand), wanted_of(pod, request)
        where = node.columns.resources.index[CPU]
        cpu, code = node.allocs[where] - node.uses[where], tables.code_of(gpu_types(node))
        before, after = states_of_row(wanted, node)
        loss = tables.expected_of_row(code, cpu - wanted.cpu, after) - tables.expected_of_row(code, cpu, before)
        loss += slot_losses_of_row(demand, wanted, cpu, before.whole, after.whole)
        loss += type_prices(demand, tables).item(code) * (wanted.gpus.gpus * wanted.gpus.milli / WHOLE)
        steps = int((loss / STEP + 0.5) // 1)
        free = WITHOUT_GPUS if request is None and not node.devices.offered("") else 0
        return min(max(MIDDLE - _PER_STEP * steps, 0), 2 * MIDDLE) + free

    def _tables_of(self, demand: Demand) -> FillTables:
        if self._tables is None or not self._tables.are_of(demand):
            self._tables = FillTables(demand)
        return self._tables


def wanted_of(pod: PodClass, request: DeviceRequest | None) -> Wanted:
    """Returns what a class takes of a node. A part that is stated as memory counts as half a GPU."""
    return pod.cached("demand", lambda: _wanted(pod, request))


def _wanted(pod: PodClass, request: DeviceRequest | None) -> Wanted:
    cpu = dict(pod.demand.amounts).get(CPU, 0)
    if request is None:
        return wanted_of_node(cpu, 0, 0)
    return wanted_of_node(cpu, request.number, (request.share or WHOLE // 2) if request.is_part else WHOLE)


def type_prices(demand: Demand, tables: FillTables) -> Any:
    """Returns the price of a GPU by the code of its type."""
    return tables.prices(demand.type_prices)


def _codes(tables: FillTables, nodes: Nodes) -> Any:
    return nodes.columns.cached_until_node_change(
        ("fill tables", tables.mix_version), lambda: tables.codes_of(gpu_types(Nodes(nodes.columns)))
    )[nodes.where]
