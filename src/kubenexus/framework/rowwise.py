"""Plugins written for one node at a time, as in Go, instead of for all nodes at once.

    class KeepOffOldKernels(RowFilter):
        name = "KeepOffOldKernels"
        reads = ("spec.tolerations",)
        OLD = Reason("node(s) ran an old kernel", Code.UNRESOLVABLE)

        def filter_one(self, pod: PodClass, node: NodeRow) -> Reason | None:
            return self.OLD if node.labels.get("kernel", "") < "6" else None

`RowFilter` and `RowScore` implement the vectorised methods of `framework.extension_points` with such a method; a
plugin may inherit both. The runtime calls `filter` and `score` as those of any plugin: with all rows for a new class,
later with the rows that changed. A row costs a few microseconds in this form, and some nanoseconds as an expression
over columns. So this form is for prototypes, for a hundred nodes, or as the reference that a fast plugin is tested
against.

The contract of `framework.extension_points` holds: methods are pure, do no I/O, and read only fields in `reads`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, ClassVar

import msgspec
import numpy as np

from kubenexus.api.core import Taint
from kubenexus.api.devices.device import Device
from kubenexus.base.arrays import BoolColumn
from kubenexus.framework.extension_points import HIGHER_IS_BETTER, Depends, Normalize
from kubenexus.framework.job import JobView
from kubenexus.framework.pod_class import PodClass
from kubenexus.framework.verdict import NodeVerdict, Reason
from kubenexus.state.view import Nodes


class ResourceAmounts(dict[str, int]):
    """Amounts by resource, cpu in thousandths; 0 for any other resource."""

    def __missing__(self, resource: str) -> int:
        return 0


class NodeRow(msgspec.Struct, frozen=True, gc=False):
    """A node as plain values, copied from the columns. A test can build one by hand.

    `used` is what all pods take that are bound or assumed there; `used["pods"]` is their number.
    """

    name: str
    labels: Mapping[str, str] = {}
    taints: tuple[Taint, ...] = ()
    alloc: ResourceAmounts = msgspec.field(default_factory=ResourceAmounts)
    used: ResourceAmounts = msgspec.field(default_factory=ResourceAmounts)
    cordoned: bool = False
    features: frozenset[str] = frozenset()
    devices: tuple[Device, ...] = ()

    def free(self, resource: str) -> int:
        return self.alloc[resource] - self.used[resource]


class RowRule(ABC):
    """The base of both forms.

    By default the runtime calls the plugin again for a row when its node or its pods changed. A plugin that never reads
    `used` sets `depends = Depends.NODE` and is called less often.
    """

    name: ClassVar[str]
    reads: ClassVar[tuple[str, ...]] = ()
    depends: ClassVar[Depends] = Depends.USAGE

    def __init__(self, args: Mapping[str, Any]) -> None:
        """Called once, at start-up, with the arguments of `pluginConfig`."""
        self.args = args


class RowFilter(RowRule):
    @abstractmethod
    def filter_one(self, pod: PodClass, node: NodeRow) -> Reason | Iterable[Reason] | None:
        """Returns why this pod cannot run on this node: one reason, several, or None if it can."""

    def filter(self, pod: PodClass, nodes: Nodes, verdict: NodeVerdict) -> None:
        """Called by the runtime, see `framework.extension_points.Filter`."""
        refused: dict[Reason, BoolColumn] = {}
        for i, node in rows(nodes):
            answer = self.filter_one(pod, node)
            for reason in (answer,) if isinstance(answer, Reason) else answer or ():
                refused.setdefault(reason, np.zeros(nodes.width, np.bool_))[i] = True
        for reason, where in refused.items():
            verdict.reject(where, reason)


class RowScore(RowRule):
    """`normalize` turns raw scores into 0..100; by default that of the best node becomes 100."""

    normalize: ClassVar[Normalize] = HIGHER_IS_BETTER

    @abstractmethod
    def score_one(self, pod: PodClass, node: NodeRow) -> int | float:
        """Returns how good this node is for this pod, in any unit. The runtime cuts off fractions once."""

    def score(self, pod: PodClass, nodes: Nodes, job: JobView) -> Any:
        """Called by the runtime, see `framework.extension_points.Score`. Rows without a node get 0, which has no
        effect."""
        scores: list[int | float] = [0] * nodes.width
        for i, node in rows(nodes):
            scores[i] = self.score_one(pod, node)
        return np.array(scores)


def rows(nodes: Nodes) -> Iterator[tuple[int, NodeRow]]:
    """Yields the nodes of a view, each with its position there. Rows of deleted nodes are left out."""
    columns, resources = nodes.columns, nodes.columns.resources
    names = list(resources.index)
    for i, row in enumerate(np.arange(columns.size)[nodes.where].tolist()):
        if columns.alive[row]:
            yield (
                i,
                NodeRow(
                    name=columns.names[row],
                    labels=MappingProxyType(columns.labels.of_row(row)),
                    taints=columns.taints.sets[columns.taints.codes[row]],
                    alloc=_counted(names, resources.alloc[: len(names), row]),
                    used=_counted(names, resources.used[: len(names), row]),
                    cordoned=bool(columns.cordoned[row]),
                    features=columns.features[row],
                    devices=columns.devices.of_row(row).node.devices,
                ),
            )


def _counted(names: list[str], amounts: Any) -> ResourceAmounts:
    return ResourceAmounts((name, amount) for name, amount in zip(names, amounts.tolist(), strict=True) if amount)
