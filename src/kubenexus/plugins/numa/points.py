"""The points of NUMA nodes for a pod: numbers, or columns of them.

    fit        100 while the NUMA node is then used by 50 to 70 percent, a point less for each percent outside of that;
               a fifth more on a preferred NUMA node
    bandwidth  50; for pods to which bandwidth matters, where it is known: 100 less the share of the memory they take
    distance   100 less 5 for each step of the mean distance to the others above 10, times the pod's weight
    gang       50
    devices    15 more if the devices of the pod are on NUMA nodes: where it fits, they are free there

40 percent fit, 25 bandwidth, 20 distance, 15 gang, and the devices. The best NUMA node counts: its 0 to 100 points
become 30 to 100. A node on which the pod needs several NUMA nodes has 25 points, 5 less for each beyond two that its
scarcest resource needs.
"""

from typing import Any, Final, NamedTuple

import numpy as np

NEUTRAL: Final = 50
ALONE: Final = 100  # points of distance of a NUMA node without others
BEST_FREE: Final = 40  # percent of a NUMA node that are best left once it has the pod
LEEWAY: Final = 10  # percent more or less that are as good
PREFERRED: Final = 1.2
DEVICES: Final = 15
LEAST_FITTING: Final = 30
SEVERAL: Final = 25
OF_CPU, OF_MEMORY = 60, 40  # percent


class Weights(NamedTuple):
    fit: float = 0.40
    bandwidth: float = 0.25
    distance: float = 0.20
    gang: float = 0.15


WEIGHTS: Final = Weights()


def cpu_percent(cpus: Any, memory: Any) -> Any:
    """Returns how many percent of a NUMA node each of its CPUs is: six tenths are its CPUs, four its memory; all where
    the memory is not known."""
    return np.where(cpus > 0, np.where(memory > 0, OF_CPU, 100), 0) / np.maximum(cpus, 1)


def memory_percent(memory: Any) -> Any:
    """Returns how many percent of a NUMA node each byte of its memory is."""
    return np.where(memory > 0, OF_MEMORY, 0) / np.maximum(memory, 1)


def bandwidth_points(taken: Any, memory: Any) -> Any:
    """Returns the points for a pod that takes so much of the memory, where bandwidth matters and is known."""
    return np.maximum(100 - 100 * np.asarray(taken) / np.maximum(memory, 1), 0)


def distance_points(mean: Any, weight: int) -> Any:
    """Returns the points for a mean distance to the other NUMA nodes. A weight of 50 counts once, 100 twice."""
    return np.clip(100 - (np.asarray(mean) - 10) * 5 * weight / 50, 0, 100)


def node_points(best: Any) -> Any:
    """Returns the score of a node from the points of its best NUMA node, before it is rounded down."""
    return LEAST_FITTING + best * ((100 - LEAST_FITTING) / 100) + 0.5


def several_points(zones: Any) -> Any:
    """Returns the score of a node on which a pod needs so many NUMA nodes."""
    return np.clip(SEVERAL - 5 * (np.asarray(zones) - 2), 0, SEVERAL)
