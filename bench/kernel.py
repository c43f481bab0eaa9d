"""The yardstick: the least that NumPy needs for one decision over all nodes.

Does the pod fit in cpu, memory and number of pods, how full would the node be (LeastAllocated), how evenly
(BalancedAllocation), the sum, the best row. All columns and all scratch space exist beforehand; nothing is remembered
between two calls, and there is no Python object per node. It answers no question that a scheduler is asked (it knows
no labels, taints or names), so it is not a rival, only a measure of the machine.
"""

from typing import Any, Final

import numpy as np

from bench.measure import clock

CPU: Final = 100
MEMORY: Final = 500 << 20


class Kernel:
    """The columns of a cluster of equal nodes, full to a random degree up to nine tenths."""

    def __init__(self, nodes: int, seed: int = 7) -> None:
        size = np.array([[4_000], [32 << 30], [110]], np.int64)
        self.alloc: Any = np.repeat(size, nodes, axis=1)
        fill = np.random.default_rng(seed).uniform(0.0, 0.9, size=(3, nodes))
        self.used: Any = (self.alloc * fill).astype(np.int64)
        self._inverse = 1.0 / self.alloc[:2]
        self._share = np.empty((2, nodes))
        self._total = np.empty(nodes)
        self._bad = np.empty(nodes, np.bool_)
        self._also = np.empty(nodes, np.bool_)

    def decide(self, cpu: int, memory: int) -> int:
        """The best row, or -1 if the pod fits nowhere."""
        used, share, total, bad, also = self.used, self._share, self._total, self._bad, self._also
        np.add(used[0], cpu, out=share[0])
        np.add(used[1], memory, out=share[1])
        share *= self._inverse
        np.greater(share[0], 1.0, out=bad)
        np.greater(share[1], 1.0, out=also)
        bad |= also
        np.greater_equal(used[2], self.alloc[2], out=also)
        bad |= also
        np.subtract(share[0], share[1], out=total)
        np.abs(total, out=total)
        total += share[0]
        total += share[1]
        total *= -50.0
        total[bad] = -np.inf
        best = int(total.argmax())
        return -1 if bad[best] else best

    def seconds(self) -> float:
        """Of one decision, as the mean over two or three milliseconds of them."""
        calls = max(10, min(150, 400_000 // len(self._total)))
        start = clock()
        for _ in range(calls):
            self.decide(CPU, MEMORY)
        return (clock() - start) / calls
