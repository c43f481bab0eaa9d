"""NUMA nodes that pods keep for themselves: from all other pods, or from the other members of their gang."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np

from kubenexus.api.core import Pod
from kubenexus.api.keys import gang, numa
from kubenexus.api.keys.reading import read_key

ALL_PODS: Final = "*"  # no key of a gang
ISOLATED: Final = "isolated"
_KEYS: Final = frozenset[str]().union(numa.POLICY.keys, gang.NUMA_SPREAD.keys)


def kept_from(pod: Pod, gang_key: str) -> str:
    """Returns from which pods this one keeps its NUMA nodes: `ALL_PODS`, the key of its gang, or "" for none."""
    labels, annotations = pod.metadata.labels, pod.metadata.annotations
    if _KEYS.isdisjoint(labels) and _KEYS.isdisjoint(annotations):
        return ""
    if read_key(numa.POLICY, labels, annotations).value == ISOLATED:
        return ALL_PODS
    return gang_key if read_key(gang.NUMA_SPREAD, labels, annotations).value == ISOLATED else ""


class KeptZones:
    """By whom they are kept from, the sets of NUMA nodes of all rows that have any."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[int, int]] = {}
        self.any = False  # whether any pod keeps NUMA nodes for itself

    def set(self, row: int, before: Mapping[str, int], now: Mapping[str, int]) -> None:
        """Replaces what pods keep on a row."""
        for key in before:
            rows = self._rows[key]
            rows.pop(row, None)
            if not rows:
                del self._rows[key]
        for key, zones in now.items():
            self._rows.setdefault(key, {})[row] = zones
        self.any = bool(self._rows)

    def any_from(self, keys: Iterable[str]) -> bool:
        """Returns whether any row has NUMA nodes that are kept from pods with these keys."""
        return self.any and any(key in self._rows for key in keys)

    def of_row(self, row: int, keys: Iterable[str]) -> int:
        """Returns the NUMA nodes of a row that are kept from pods with these keys."""
        zones = 0
        for key in keys:
            zones |= self._rows.get(key, {}).get(row, 0)
        return zones

    def column(self, size: int, keys: Iterable[str]) -> Any:
        """Returns the same for all rows. Called only if any row has some."""
        zones = np.zeros(size, np.int64)
        for key in keys:
            rows = self._rows.get(key)
            if rows:
                zones[list(rows)] |= list(rows.values())
        return zones
