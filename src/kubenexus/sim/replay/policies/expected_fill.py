"""ExpectedFill: places a pod where the node is then expected to leave least GPU idle, and keeps slots for large pods.

An experiment (docs/benchmarks.md): the mix of shapes is that of the trace, as for FGD. Score of a node, in fiftieths of
a GPU below an offset: the growth of its expected idle GPU (`fill_table`), and a price for each slot of several GPUs
that the pod takes away from larger pods. The price is the slot's GPUs times (expected demand / slots left) to the power
of four: next to nothing while slots are plenty.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from kubenexus.api.devices.device_share import WHOLE
from kubenexus.base.arrays import IntColumn
from kubenexus.framework.extension_points import Normalize
from kubenexus.framework.job import JobView
from kubenexus.framework.pod_class import PodClass
from kubenexus.sim.replay.policies.fill_table import FillTable, coarse
from kubenexus.sim.replay.policies.node_state import (
    ChoosesGpu,
    PodRequest,
    free_cpu,
    gpus_left,
    models_of,
    request_of,
)
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.view import Nodes

STEP: Final = 20  # thousandths of a GPU that one point stands for
SLOTS: Final = (2, 4, 8)  # GPUs
POWER: Final = 4
_OFFSET: Final = 1_000_000
_NEVER: Final = 1e12


class _Rows(NamedTuple):
    """States of rows: free cpu, whole GPUs, and what is left of GPUs in use, most first, a row for each node."""

    cpu: Any
    whole: Any
    begun: Any


class ExpectedFill(ChoosesGpu):
    name = "ExpectedFill"
    normalize = Normalize("points")  # used as they are: more than 100 steps

    def __init__(self, args: Mapping[str, Any]) -> None:
        self._shapes: Sequence[Sequence[Any]] = args["shapes"]
        self._tables: dict[tuple[bool, ...], FillTable] = {}
        super().__init__()
        on_gpus = sum(shape[1] * shape[2] * shape[4] for shape in self._shapes) / WHOLE
        self._demand = {  # slots of each size that are asked for, for each GPU that is
            size: sum(shape[4] for shape in self._shapes if shape[1] == size) / max(on_gpus, 1e-9) for size in SLOTS
        }
        self._cpu = {size: min([s[0] for s in self._shapes if s[1] == size], default=1) or 1 for size in SLOTS}

    def stamp(self, pod: PodClass, nodes: NodeColumns, point: str) -> tuple[int, int]:
        """Prices follow from all rows, so that every placement moves the scores of all of them."""
        return nodes.node_changes.mark, nodes.usage_changes.mark

    def score(self, pod: PodClass, nodes: Nodes, job: JobView) -> IntColumn:
        request, rows = request_of(pod), _rows_of(nodes)
        growth = self._growth(request, rows, nodes).min(axis=0) + self._slot_prices(request, rows, nodes)
        scores: IntColumn = np.clip(_OFFSET - np.rint(growth / STEP), 0, 2 * _OFFSET).astype(np.int64)
        return scores

    def choose_gpu(self, pod: PodClass, request: PodRequest, node: Nodes) -> int:
        """Returns the GPU in use that a part fills up most, or a free one if that is expected to leave less idle."""
        begun, fresh = self._growth(request, _rows_of(node), node)[:, 0].tolist()
        left = gpus_left(node)[0]
        wanted = left == WHOLE if fresh < begun else (left >= request.gpu_milli) & (left < WHOLE)
        return int(np.where(wanted, left, 2 * WHOLE).argmin())

    def _growth(self, request: PodRequest, rows: _Rows, nodes: Nodes) -> Any:
        """Returns by how much the expected idle GPU grows, for a GPU in use and for free ones; `_NEVER` where the pod
        does not fit so."""
        before = self._values(rows, nodes)
        cpu, position = rows.cpu - request.cpu, np.arange(len(rows.cpu))
        found = np.full((2, len(rows.cpu)), _NEVER)
        if not request.gpus:
            found[1] = self._values(_Rows(cpu, rows.whole, rows.begun), nodes) - before
        elif not request.is_part:
            after = _Rows(cpu, np.maximum(rows.whole - request.gpus, 0), rows.begun)
            found[1] = np.where(rows.whole >= request.gpus, self._values(after, nodes) - before, _NEVER)
        else:
            fitting = (rows.begun >= request.gpu_milli).sum(axis=1)
            begun = rows.begun.copy()
            begun[position, np.maximum(fitting - 1, 0)] -= request.gpu_milli
            after = _Rows(cpu, rows.whole, _sorted(np.maximum(begun, 0)))
            found[0] = np.where(fitting > 0, self._values(after, nodes) - before, _NEVER)
            opened = np.concatenate([rows.begun, np.full((len(cpu), 1), WHOLE - request.gpu_milli)], axis=1)
            after = _Rows(cpu, np.maximum(rows.whole - 1, 0), _sorted(opened))
            found[1] = np.where(rows.whole > 0, self._values(after, nodes) - before, _NEVER)
        return found

    def _values(self, rows: _Rows, nodes: Nodes) -> Any:
        """Returns the expected idle GPU of states on these nodes. GPUs in use beyond the second count as idle."""
        codes, models = models_of(nodes)
        values = np.empty(len(rows.cpu))
        most, second, rest = rows.begun[:, 0], rows.begun[:, 1], rows.begun[:, 2:].sum(axis=1)
        for code in np.unique(codes).tolist():
            here = codes == code
            table = self._table(models[code])
            values[here] = table.at(rows.cpu[here], rows.whole[here], most[here], second[here])
        return values + rest

    def _table(self, model: str) -> FillTable:
        """Returns the table for nodes of a model. Models that the same shapes may use share one."""
        allowed = tuple([not shape[3] or model in shape[3].split("|") for shape in self._shapes])
        known = self._tables.get(allowed)
        if known is None:
            shapes = [coarse(s[0], s[1], s[2], s[4]) for s, may in zip(self._shapes, allowed, strict=True) if may]
            known = self._tables[allowed] = FillTable(shapes)
        return known

    def _slot_prices(self, request: PodRequest, rows: _Rows, nodes: Nodes) -> Any:
        everywhere = _rows_of(Nodes(nodes.columns))
        idle = (everywhere.whole.sum() * WHOLE + everywhere.begun.sum()) / WHOLE
        taken = _Rows(rows.cpu - request.cpu, rows.whole - (request.gpus if not request.is_part else 0), rows.begun)
        opened = request.is_part & ~(rows.begun >= request.gpu_milli).any(axis=1)
        prices = np.zeros(len(rows.cpu))
        for size in SLOTS:
            wanted, left = self._demand[size] * idle, self._slots(everywhere, size).sum()
            if wanted:
                lost = self._slots(rows, size) - self._slots(taken._replace(whole=taken.whole - opened), size)
                price = size * WHOLE * min(1.0, wanted / max(left, 1)) ** POWER
                prices += price * (lost - (request.gpus == size))
        return prices

    def _slots(self, rows: _Rows, size: int) -> Any:
        """Returns how many pods with so many GPUs each row could take."""
        return np.minimum(np.maximum(rows.whole, 0) // size, np.maximum(rows.cpu, 0) // self._cpu[size])


def _rows_of(nodes: Nodes) -> _Rows:
    left = gpus_left(nodes)
    begun = np.where(left == WHOLE, 0, left)
    padding = max(3 - begun.shape[1], 0)
    return _Rows(free_cpu(nodes), (left == WHOLE).sum(axis=1), _sorted(np.pad(begun, ((0, 0), (0, padding)))))


def _sorted(begun: Any) -> Any:
    """Returns what is left of GPUs in use, most first in each row."""
    return -np.sort(-begun, axis=1)
