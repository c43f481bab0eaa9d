"""The allocatable resources of a node, as kube-scheduler counts them."""

import functools
from collections.abc import Mapping

from kubenexus.api.core import Node, QuantityText
from kubenexus.api.quantity import NANO, ceil_within_int64, to_nano
from kubenexus.api.resource_names import CPU, MEMORY, PODS, Amounts, to_scheduler_units
from kubenexus.base.errors import Malformed, truncated

MAX_OFFERED = 128  # of one node: each takes 32 bytes on all nodes
_USUALLY = frozenset((CPU, MEMORY, PODS, "ephemeral-storage"))
_USUAL = 4096  # characters; longer lists are not cached, since thousands of them would only fill memory


def allocatable(node: Node) -> Amounts:
    """Returns cpu in thousandths; memory, ephemeral storage, pods and scalar resources in units. A negative amount
    counts as 0: the kubelet wrote it, users cannot correct it, and a node must not look emptier for it."""
    listed = tuple(_listed(node.status.allocatable).items())
    size = sum([len(name) + len(str(text)) for name, text in listed])
    try:
        return _offered(listed) if size <= _USUAL else _offered.__wrapped__(listed)
    except Malformed as error:
        raise error.within(subject=f"Node {truncated(node.metadata.name)}") from None


def _listed(amounts: Mapping[str, QuantityText]) -> Mapping[str, QuantityText]:
    """Returns at most MOST_OFFERED resources: those that every node has, then the others by name."""
    if len(amounts) <= MAX_OFFERED:
        return amounts
    names = [name for name in _USUALLY if name in amounts] + sorted(amounts.keys() - _USUALLY)
    return {name: amounts[name] for name in names[:MAX_OFFERED]}


@functools.lru_cache(maxsize=256)  # thousands of nodes come in a few sizes
def _offered(allocatable: tuple[tuple[str, QuantityText], ...]) -> Amounts:
    offered: dict[str, int] = {}
    for name, text in allocatable:
        try:
            offered[name] = max(to_nano(text), 0)
        except Malformed as error:
            raise error.within(f"status.allocatable[{truncated(name)}]") from None
    pods = ceil_within_int64(offered.pop(PODS, 0), NANO)
    return tuple(sorted((*to_scheduler_units(offered), (PODS, pods)))) if pods else to_scheduler_units(offered)
