"""Names of resources, and which of them kube-scheduler's NodeInfo keeps."""

import functools
from collections.abc import Mapping
from typing import Final

from kubenexus.api.quantity import NANO, NANO_PER_MILLI, ceil_within_int64
from kubenexus.api.selectors import is_label_key

CPU: Final = "cpu"
MEMORY: Final = "memory"
EPHEMERAL_STORAGE: Final = "ephemeral-storage"
PODS: Final = "pods"
_BASIC: Final = frozenset({CPU, MEMORY, EPHEMERAL_STORAGE})

_MAX_CHECKED: Final = 2_000
Amounts = tuple[tuple[str, int], ...]


def is_basic(name: str) -> bool:
    """Returns whether every node is scored by the resource, requested or not. `pods` is not among these."""
    return name in _BASIC


def is_extended(name: str) -> bool:
    """Returns whether a resource is an extended one (`example.com/gpu`): a qualified name outside kubernetes.io."""
    if "/" not in name or "kubernetes.io/" in name or name.startswith("requests."):
        return False
    return is_label_key("requests." + name)


def is_scalar(name: str) -> bool:
    """Returns whether NodeInfo counts a resource besides cpu, memory, ephemeral storage and pods."""
    return _is_scalar(name) if len(name) <= 400 else _is_scalar.__wrapped__(name)


@functools.lru_cache(maxsize=1024)
def _is_scalar(name: str) -> bool:
    return name.startswith(("hugepages-", "attachable-volumes-")) or "kubernetes.io/" in name or is_extended(name)


def to_scheduler_units(nanos: Mapping[str, int]) -> Amounts:
    """Returns the resources that NodeInfo keeps, in its units. Above _MOST_CHECKED names the names are not checked: no
    node offers invalid ones, and no pod with so many is placed."""
    many = len(nanos) > _MAX_CHECKED
    kept = [
        (name, ceil_within_int64(nano, NANO_PER_MILLI if name == CPU else NANO))
        for name, nano in nanos.items()
        if nano and (many or name in _BASIC or is_scalar(name))
    ]
    kept.sort()
    return tuple(kept)
