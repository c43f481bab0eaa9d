"""The points of NUMA nodes for a pod: numbers, or columns of them.

    fit        100 while the NUMA node is then used by 50 to 70 percent, a point less for each percent outside of that;
               a fifth more on a preferred NUMA node
    bandwidth  50; for pods to which bandwidth matters, where it is known: 100 less the share of the memory they take
    distance   100 less 5 for each step of the mean distance to the others above 10, times the pod's weight
    gang       50
    devices    15 more if all devices of the pod are free there, 25 less if not

40 percent fit, 25 bandwidth, 20 distance, 15 gang, and the devices. The best NUMA node counts: its 0 to 100 points
become 30 to 100. A node on which the pod needs several NUMA nodes has 25 points, 5 less for each beyond two that its
scarcest resource needs.
"""

from typing import Any, Final

import numpy as np

NEUTRAL: Final = 50
BEST_USE: Final = (50, 70)  # percent
WITH_DEVICES, WITHOUT_DEVICES = 15, -25
LEAST_FITTING: Final = 30
SEVERAL: Final = 25


def fit_points(used: Any) -> Any:
    """Returns the points of a NUMA node that is used by so many percent once it has the pod."""
    return 100 - np.maximum(np.maximum(BEST_USE[0] - used, used - BEST_USE[1]), 0)


def use_after(cpus_left: Any, cpus: Any, memory_left: Any, memory: Any) -> Any:
    """Returns the use in percent: six tenths cpu, four tenths memory; cpu alone where the memory is not known."""
    of_cpus = 100 - 100 * np.maximum(cpus_left, 0) / np.maximum(cpus, 1)
    of_memory = 100 - 100 * np.maximum(memory_left, 0) / np.maximum(memory, 1)
    return np.where(np.asarray(memory) > 0, 0.6 * of_cpus + 0.4 * of_memory, of_cpus)


def bandwidth_points(taken: Any, memory: Any) -> Any:
    """Returns the points for a pod that takes so much of the memory, where bandwidth matters and is known."""
    return np.maximum(100 - 100 * np.asarray(taken) / np.maximum(memory, 1), 0)


def distance_points(mean: Any, weight: int) -> Any:
    """Returns the points for a mean distance to the other NUMA nodes. A weight of 50 counts once, 100 twice."""
    return np.clip(100 - (np.asarray(mean) - 10) * 5 * weight / 50, 0, 100)


def zone_points(fit: Any, bandwidth: Any, distance: Any, gang: Any = NEUTRAL, devices: Any = 0) -> Any:
    """Returns the points of a NUMA node, 0 to 100."""
    total = 0.40 * np.asarray(fit) + 0.25 * np.asarray(bandwidth) + 0.20 * np.asarray(distance) + 0.15 * gang + devices
    return np.clip(total, 0, 100)


def node_points(best: Any) -> Any:
    """Returns the score of a node from the points of its best NUMA node."""
    return (LEAST_FITTING + np.asarray(best) * (100 - LEAST_FITTING) / 100 + 0.5).astype(np.int64)


def several_points(zones: Any) -> Any:
    """Returns the score of a node on which a pod needs so many NUMA nodes."""
    return np.clip(SEVERAL - 5 * (np.asarray(zones) - 2), 0, SEVERAL)
