"""Rules written for one node at a time, as in Go, instead of for all nodes at once.

    class KeepOffOldKernels(RowFilter):
        name = "KeepOffOldKernels"
        reads = ("spec.tolerations",)
        OLD = Reason("node(s) ran an old kernel", Code.UNRESOLVABLE)

        def filter_one(self, pod: PodClass, node: NodeRow) -> Reason | None:
            return self.OLD if node.labels.get("kernel", "") < "6" else None

`RowFilter` and `RowScore` turn such a method into the vectorised one of `framework.extension_points`; a rule may
inherit both. The runtime calls `filter` and `score` as it calls those of any plugin: with all rows for a class it has
not seen, later only with the rows that changed. So this form pays a few microseconds for each row where a column
expression pays some nanoseconds: fine for trying a rule out, for a hundred nodes, or as the naive twin that a fast rule
is tested against.

The promises are those of `framework.extension_points`, too: pure, no I/O, and `reads` names every pod field that is
looked at.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, ClassVar

import msgspec
import numpy as np

from kubenexus.api.core import Taint
from kubenexus.base.arrays import BoolColumn
from kubenexus.framework.extension_points import HIGHER_IS_BETTER, Depends, Normalize
from kubenexus.framework.job import JobView
from kubenexus.framework.pod_class import PodClass
from kubenexus.framework.verdict import NodeVerdict, Reason
from kubenexus.state.devices import Device
from kubenexus.state.view import Nodes


class ResourceAmounts(dict[str, int]):
    """Amounts by resource, cpu in thousandths; what is not there is 0."""

    def __missing__(self, resource: str) -> int:
        return 0


class NodeRow(msgspec.Struct, frozen=True, gc=False):
    """A node as plain values, copied out of the columns; a test can make one by hand.

    `used` is what is taken by all pods that run there or were promised to; `used["pods"]` counts them.
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
    """What both forms share. By default a row is asked about again whenever the node changed or what runs there did;
    a rule that never looks at `used` says `depends = Depends.NODE` and is asked less often."""

    name: ClassVar[str]
    reads: ClassVar[tuple[str, ...]] = ()
    depends: ClassVar[Depends] = Depends.USAGE

    def __init__(self, args: Mapping[str, Any]) -> None:
        """`args` are those of `pluginConfig`. Called once, at start-up."""
        self.args = args


class RowFilter(RowRule):
    @abstractmethod
    def filter_one(self, pod: PodClass, node: NodeRow) -> Reason | Iterable[Reason] | None:
        """Why this pod cannot run on this node: one reason, several, or None if it can."""

    def filter(self, pod: PodClass, nodes: Nodes, verdict: NodeVerdict) -> None:
        """Called by the runtime; see `framework.extension_points.Filter`."""
        refused: dict[Reason, BoolColumn] = {}
        for i, node in rows(nodes):
            answer = self.filter_one(pod, node)
            for reason in (answer,) if isinstance(answer, Reason) else answer or ():
                refused.setdefault(reason, np.zeros(nodes.width, np.bool_))[i] = True
        for reason, where in refused.items():
            verdict.reject(where, reason)


class RowScore(RowRule):
    """`normalize` says how raw scores become 0..100; by default the best node's becomes 100."""

    normalize: ClassVar[Normalize] = HIGHER_IS_BETTER

    @abstractmethod
    def score_one(self, pod: PodClass, node: NodeRow) -> int | float:
        """How good this node is for this pod, in any unit. Fractions are cut off once, by the runtime."""

    def score(self, pod: PodClass, nodes: Nodes, job: JobView) -> Any:
        """Called by the runtime; see `framework.extension_points.Score`. Rows without a node get 0, which nobody looks
        at."""
        scores: list[int | float] = [0] * nodes.width
        for i, node in rows(nodes):
            scores[i] = self.score_one(pod, node)
        return np.array(scores)


def rows(nodes: Nodes) -> Iterator[tuple[int, NodeRow]]:
    """The nodes of a view, each with its place in it. Rows whose node is gone are left out."""
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
                    devices=columns.devices.of_row(row),
                ),
            )


def _counted(names: list[str], amounts: Any) -> ResourceAmounts:
    return ResourceAmounts((name, amount) for name, amount in zip(names, amounts.tolist(), strict=True) if amount)
