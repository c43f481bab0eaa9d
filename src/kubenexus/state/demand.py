"""What pods are expected to ask for: the mix of shapes, and what GPU slots and types are short of it.

It is learned outside of the ledger (`plan.demand_learner`) and set as a whole, so that a decision that reads it stays a
function of the state, and a recording has it.
"""

from typing import Any, Final

import msgspec

from kubenexus.api.core import NodeSelectorTerm, Pod
from kubenexus.api.devices.device_share import WHOLE
from kubenexus.api.keys import discovered, gpu

# Labels of nodes that name the GPU type, the first that is there.
TYPE_LABELS: Final = (*(spelling.key for spelling in gpu.MODEL.spellings), discovered.PRODUCT.key)
MAX_TYPES: Final = 8  # GPU types of a shape, and of a cluster that are distinguished


class DemandShape(msgspec.Struct, frozen=True, gc=False, order=True):
    """What a pod asks for: cpu in thousandths, a number of GPUs, and thousandths of each. `types` are the GPU types
    that will do, sorted; none: any."""

    cpu: int
    gpus: int = 0
    milli: int = 0
    types: tuple[str, ...] = ()

    @property
    def on_gpus(self) -> float:
        """Its GPUs."""
        return self.gpus * self.milli / WHOLE


class SlotDemand(msgspec.Struct, frozen=True, gc=False):
    """Slots of `size` free GPUs on one node: how many pods that need one are expected until the cluster is full, how
    many slots there are, and the price of taking one away, in thousandths of a GPU. `cpu` is what such a pod needs at
    least."""

    size: int
    cpu: int
    expected: int
    left: int
    price: int


class Demand(msgspec.Struct, frozen=True, gc=False):
    """`mix` has the share of each shape; `mix_version` changes with it. `type_prices` are thousandths of a GPU for each
    GPU of a type that pods take. `types` are those told apart, each with the GPUs of its largest node."""

    mix_version: int
    mix: tuple[tuple[DemandShape, float], ...]
    slots: tuple[SlotDemand, ...] = ()
    types: tuple[tuple[str, int], ...] = ()
    type_prices: tuple[tuple[str, int], ...] = ()
    on_gpu_nodes: bool = False  # pods without GPUs run on GPU nodes, too: most nodes have GPUs


def required_types(pod: Pod) -> tuple[str, ...]:
    """Returns the GPU types that a pod may run on by its node selector or required affinity; none if any will do."""
    selector = pod.spec.node_selector
    for key in TYPE_LABELS:
        if key in selector:
            return (selector[key],)
    affinity = pod.spec.affinity
    required = affinity and affinity.node_affinity and affinity.node_affinity.required
    if not required:
        return ()
    found: set[str] = set()
    for term in required.node_selector_terms[:MAX_TYPES]:
        named = _types_of(term)
        if not named:
            return ()  # terms are alternatives: this one names no type
        found.update(named)
    return tuple(sorted(found)[:MAX_TYPES])


def _types_of(term: NodeSelectorTerm) -> Any:
    for each in term.match_expressions:
        if each.key in TYPE_LABELS and each.operator == "In":
            return each.values[:MAX_TYPES]
    return ()
