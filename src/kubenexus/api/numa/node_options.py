"""The options of a kubelet's managers, from the labels of its node: no NodeResourceTopology tells them."""

from collections.abc import Mapping
from typing import Final

from kubenexus.api.keys import numa
from kubenexus.api.keys.reading import read_key
from kubenexus.api.numa.reported_node import NO_OPTIONS, KubeletOptions

_ENTRIES: Final = (numa.PREFER_CLOSEST, numa.FULL_CORES, numa.SPREAD_CPUS, numa.THREADS)
_KEYS: Final = frozenset[str]().union(*(entry.keys for entry in _ENTRIES))


def node_options(labels: Mapping[str, str]) -> KubeletOptions:
    """Returns the options that a node's labels name."""
    if _KEYS.isdisjoint(labels):
        return NO_OPTIONS
    return KubeletOptions(
        bool(read_key(numa.PREFER_CLOSEST, labels, {}).value),
        bool(read_key(numa.FULL_CORES, labels, {}).value),
        bool(read_key(numa.SPREAD_CPUS, labels, {}).value),
        int(read_key(numa.THREADS, labels, {}).value or 0),
    )
