"""The check of totals that a kubelet makes after its managers have allocated: `OutOfcpu` and its like."""

from collections.abc import Collection, Mapping

from kubenexus.api.core import Node, Pod
from kubenexus.api.numa.refusal import OUT_OF, Refused
from kubenexus.api.quantity import to_milli, to_units
from kubenexus.api.resource_names import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, is_extended
from kubenexus.api.resources import demand

_FIRST = (CPU, MEMORY, EPHEMERAL_STORAGE)


def check_totals(pod: Pod, node: Node, used: Mapping[str, int], pods: int, managed: Collection[str] = ()) -> None:
    """Raises Refused if the effective requests do not fit what is left of the node's allocatable amounts.

    `managed` are resources of device plugins, whose number the Device Manager has checked. Extended resources that the
    node does not have are ignored: they belong to the cluster.
    """
    allocatable = node.status.allocatable
    if PODS in allocatable and pods + 1 > to_units(allocatable[PODS]):
        raise _out_of(PODS, 1, pods, to_units(allocatable[PODS]))
    wanted = dict(demand(pod).amounts)
    for name in sorted(wanted, key=lambda name: (_FIRST.index(name) if name in _FIRST else len(_FIRST), name)):
        text = allocatable.get(name)
        if name in managed or (text is None and is_extended(name)):
            continue
        whole = 0 if text is None else to_milli(text) if name == CPU else to_units(text)
        if used.get(name, 0) + wanted[name] > whole:
            raise _out_of(name, wanted[name], used.get(name, 0), whole)


def _out_of(name: str, wanted: int, used: int, whole: int) -> Refused:
    text = f"Node didn't have enough resource: {name}, requested: {wanted}, used: {used}, capacity: {whole}"
    return Refused(OUT_OF + name, text)
