"""The yardstick answers as a loop over nodes would, and as the reference does: a wrong one would flatter us."""

import numpy as np
import pytest

from bench.kernel import Kernel

PODS = [(100, 500 << 20), (1, 1), (3_900, 1 << 30), (400, 28 << 30), (4_000, 32 << 30), (5_000, 1)]
# The reference kernel's own answers for these pods, written down once: on 777 and on 5000 nodes.
REFERENCE = [(187, 4_246), (187, 2_995), (614, 1_207), (430, 3_545), (-1, -1), (-1, -1)]


def one_by_one(kernel: Kernel, cpu: int, memory: int) -> int:
    """The same rule for one node after the other, in plain Python."""
    best, best_total = -1, -np.inf
    for row in range(kernel.alloc.shape[1]):
        sizes, used = kernel.alloc[:, row].tolist(), kernel.used[:, row].tolist()
        shares = [(used[r] + asked) * (1.0 / sizes[r]) for r, asked in enumerate((cpu, memory))]
        if max(shares) > 1.0 or used[2] >= sizes[2]:
            continue
        total = (abs(shares[0] - shares[1]) + shares[0] + shares[1]) * -50.0
        if total > best_total:
            best, best_total = row, total
    return best


@pytest.mark.parametrize(("cpu", "memory"), PODS)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_kernel_finds_what_a_loop_over_nodes_finds(seed: int, cpu: int, memory: int) -> None:
    kernel = Kernel(300, seed)
    kernel.used[2, ::7] = 110
    assert kernel.decide(cpu, memory) == one_by_one(kernel, cpu, memory)


def test_the_columns_are_those_of_the_reference() -> None:
    kernel = Kernel(777)
    assert kernel.alloc.sum(axis=1).tolist() == [777 * 4_000, 777 * (32 << 30), 777 * 110]
    assert kernel.used.sum(axis=1).tolist() == [1_391_097, 11_946_984_241_786, 38_543]
    assert kernel.used[:, -1].tolist() == [1_576, 8_266_456_446, 17]


@pytest.mark.parametrize(("pod", "rows"), list(zip(PODS, REFERENCE, strict=True)))
def test_the_kernel_finds_what_the_reference_finds(pod: tuple[int, int], rows: tuple[int, int]) -> None:
    assert (Kernel(777).decide(*pod), Kernel(5_000).decide(*pod)) == rows
