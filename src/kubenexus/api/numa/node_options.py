"""The options of a kubelet's managers, from the labels of its node: no NodeResourceTopology tells them."""

from collections.abc import Mapping
from typing import Final

from kubenexus.api.keys import numa
from kubenexus.api.keys.reading import read_key
from kubenexus.api.numa.reported_node import NO_OPTIONS, KubeletOptions

_ENTRIES: Final = (numa.PREFER_CLOSEST, numa.FULL_CORES, numa.SPREAD_CPUS, numa.THREADS, numa.MULTITHREADING)
_KEYS: Final = frozenset[str]().union(*(entry.keys for entry in _ENTRIES))


def node_options(labels: Mapping[str, str]) -> KubeletOptions:
    """Returns the options that a node's labels name."""
    if _KEYS.isdisjoint(labels):
        return NO_OPTIONS
    return KubeletOptions(
        bool(read_key(numa.PREFER_CLOSEST, labels, {}).value),
        bool(read_key(numa.FULL_CORES, labels, {}).value),
        bool(read_key(numa.SPREAD_CPUS, labels, {}).value),
        int(read_key(numa.THREADS, labels, {}).value or 0) or _threads(labels),
    )


def _threads(labels: Mapping[str, str]) -> int:
    """Returns how many CPUs a core has by Node Feature Discovery; 0 if it does not tell."""
    several = read_key(numa.MULTITHREADING, labels, {}).value
    return 0 if several is None else 2 if several else 1
