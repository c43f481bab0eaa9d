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
from kubenexus.plugins.devices.demand.expected_idle import (
    FillTables,
    Wanted,
    after_pod,
    after_pod_on_row,
    slot_losses,
    slot_losses_of_row,
)
from kubenexus.plugins.devices.demand.node_states import gpu_types, gpus_left, gpus_left_on
from kubenexus.plugins.devices.request import DeviceRequest
from kubenexus.state.demand import Demand
from kubenexus.state.derived import Derivation
from kubenexus.state.view import Nodes, OneNode

PER_GPU: Final = 800
STEP: Final = 10  # thousandths of a GPU
MIDDLE: Final = 10 * PER_GPU  # points of a placement that costs nothing
WITHOUT_GPUS: Final = 100  # more for pods without GPUs on nodes without GPUs
_PER_STEP: Final = PER_GPU * STEP // WHOLE


class DemandScore:
    """Scores placements by a `Demand`. It keeps the tables of the last mix, which follow from the mix alone."""

    def __init__(self) -> None:
        self._tables: FillTables | None = None

    def score(self, pod: PodClass, request: DeviceRequest | None, nodes: Nodes, demand: Demand) -> IntColumn:
        """Returns the points of rows. Rows that cannot take the pod have any."""
        tables, wanted = self._tables_of(demand), wanted_of(pod, request)
        left, cpu = gpus_left(nodes), nodes.alloc(CPU) - nodes.used(CPU)
        codes, after = _codes(tables, nodes), after_pod(wanted, left)
        before = self._before(tables, nodes)
        loss = tables.expected(codes, cpu - wanted.cpu, after) - (before if nodes.rows is None else before[nodes.rows])
        loss = loss + slot_losses(demand, wanted, cpu, left, after)
        prices = type_prices(demand, tables)
        loss = loss + prices[codes] * (wanted.gpus * wanted.milli / WHOLE)
        steps = np.floor(loss / STEP + 0.5).astype(np.int64)
        points: IntColumn = np.clip(MIDDLE - _PER_STEP * steps, 0, 2 * MIDDLE)
        if request is None:
            points[nodes.devices.offered("") == 0] += WITHOUT_GPUS
        return points

    def score_row(self, pod: PodClass, request: DeviceRequest | None, node: OneNode, demand: Demand) -> int:
        """The same for one row."""
        tables, wanted = self._tables_of(demand), wanted_of(pod, request)
        where = node.columns.resources.index[CPU]
        left, cpu = gpus_left_on(node), node.allocs[where] - node.uses[where]
        code, after = tables.code_of(gpu_types(node)), after_pod_on_row(wanted, left)
        loss = tables.expected_of_row(code, cpu - wanted.cpu, after) - self._before(tables, node).item(node.row)
        loss += slot_losses_of_row(demand, wanted, cpu, left, after)
        loss += type_prices(demand, tables).item(code) * (wanted.gpus * wanted.milli / WHOLE)
        steps = int((loss / STEP + 0.5) // 1)
        free = WITHOUT_GPUS if request is None and not node.devices.offered("") else 0
        return min(max(MIDDLE - _PER_STEP * steps, 0), 2 * MIDDLE) + free

    def _tables_of(self, demand: Demand) -> FillTables:
        if self._tables is None or not self._tables.are_of(demand):
            self._tables = FillTables(demand)
        return self._tables

    def _before(self, tables: FillTables, nodes: Nodes) -> Any:
        """Returns the expected idle GPU of all rows as they are, computed once for all classes."""

        def of(view: Nodes) -> Any:
            return tables.expected(_codes(tables, view), view.alloc(CPU) - view.used(CPU), gpus_left(view))

        def of_one(node: OneNode) -> float:
            where = node.columns.resources.index[CPU]
            code = tables.code_of(gpu_types(node))
            return tables.expected_of_row(code, node.allocs[where] - node.uses[where], gpus_left_on(node))

        wanted = Derivation(f"expected idle GPU, mix {tables.mix_version}", of, of_one)
        return nodes.columns.derived.all(wanted, nodes.columns)


def wanted_of(pod: PodClass, request: DeviceRequest | None) -> Wanted:
    """Returns what a class takes of a node. A part that is stated as memory counts as half a GPU."""
    cpu = pod.cached("demand cpu", lambda: dict(pod.demand.amounts).get(CPU, 0))
    if request is None:
        return Wanted(cpu, 0, 0)
    return Wanted(cpu, request.number, (request.share or WHOLE // 2) if request.is_part else WHOLE)


def type_prices(demand: Demand, tables: FillTables) -> Any:
    """Returns the price of a GPU by table."""
    return tables.prices(demand.type_prices)


def _codes(tables: FillTables, nodes: Nodes) -> Any:
    return nodes.columns.cached_until_node_change(
        ("fill tables", tables.mix_version), lambda: tables.codes_of(gpu_types(Nodes(nodes.columns)))
    )[nodes.where]
