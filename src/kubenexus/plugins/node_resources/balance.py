"""The balance of a node's resources, equal to kube-scheduler's: int((1 - std of the used fractions) * 100).

The standard deviation of two fractions is half their difference. The formula is here for columns, and for the plain
numbers of one node.
"""

import functools
from typing import Any

import numpy as np

from kubenexus.state.derived import Derivation
from kubenexus.state.view import ALLOC, USED, Nodes

# As arrays: NumPy takes longer to convert a Python number than to compute with a hundred of its own.
_WHOLE, _TWICE, _FIFTY, _BASE = np.array(1.0), np.array(2.0), np.array(50.0), np.array(150, np.uint8)


@functools.lru_cache(maxsize=256)
def current_balance(names: tuple[str, ...]) -> Derivation:
    """Returns the derived column of 150 minus the balance of the pods that run on each node now."""

    def of(nodes: Nodes) -> Any:
        amounts, offered = nodes.amounts(names)
        return _BASE - balance(amounts[USED], amounts[ALLOC], offered)

    return Derivation(f"150 - evenness of {names}", of)


def balance(used: Any, capacity: Any, offered: bool, out: Any = None) -> Any:
    """Returns 100 if the resources are used to the same fraction, less the more the fractions differ, as uint8.
    `offered`: no capacity is 0. `out` may be overwritten."""
    if len(used) != 2 or not offered:
        return _of_any(used, capacity)
    fractions = np.divide(used, capacity, out=out)
    if fractions.size and fractions.item(fractions.argmax()) > 1.0:
        np.minimum(fractions, _WHOLE, out=fractions)
    return balance_of_two(fractions[0] - fractions[1])


def balance_of_two(apart: Any) -> Any:
    """Returns the balance from the difference between the fractions of two resources, which is overwritten."""
    np.abs(apart, out=apart)
    np.subtract(_TWICE, apart, out=apart)  # doubling is exact, so this is 1 - apart / 2, twice, to the last bit
    apart *= _FIFTY
    return apart.astype(np.uint8)


def balance_of_node(used: list[int], capacity: list[int]) -> int:
    """Returns the balance of one node."""
    if len(used) == 2 and capacity[0] and capacity[1]:
        first, second = float(used[0]) / float(capacity[0]), float(used[1]) / float(capacity[1])  # as Go divides
        return int((1 - abs((first if first < 1.0 else 1.0) - (second if second < 1.0 else 1.0)) / 2) * 100.0)
    return int(_of_any(np.array(used)[:, None], np.array(capacity)[:, None])[0])


def _of_any(used: Any, capacity: Any) -> Any:
    """Returns the balance of any number of resources; those a node lacks are left out. Sums in upstream's order."""
    offered = capacity > 0
    count = offered.sum(axis=0)
    fractions = np.minimum(used / np.maximum(capacity, 1), 1.0) * offered
    mean, spread = np.zeros(fractions.shape[1:]), np.zeros(fractions.shape[1:])
    for fraction in fractions:
        mean += fraction
    mean /= np.maximum(count, 1)
    between, sign = np.zeros(fractions.shape[1:]), np.ones(count.shape)
    for fraction, present in zip(fractions, offered, strict=True):
        spread += np.where(present, (fraction - mean) * (fraction - mean), 0.0)
        between += sign * fraction
        sign = np.where(present, -sign, sign)
    several = np.sqrt(spread / np.maximum(count, 1))
    std = np.where(count == 2, np.abs(between / 2), np.where(count > 2, several, 0.0))
    return ((1 - std) * 100.0).astype(np.uint8)
