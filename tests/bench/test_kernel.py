"""The yardstick answers as a loop over nodes would, and as the reference does: a wrong one would flatter us."""

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.kernel import Kernel

REFERENCE = Path(__file__).parents[3] / "shared" / "bench" / "reference_kernel.py"
PODS = [(100, 500 << 20), (1, 1), (3_900, 1 << 30), (4_000, 32 << 30), (5_000, 1)]


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


@pytest.mark.skipif(not REFERENCE.exists(), reason="the reference kernel is not part of this repository")
@pytest.mark.parametrize(("cpu", "memory"), PODS)
def test_the_kernel_is_the_reference(cpu: int, memory: int) -> None:
    ours, theirs = Kernel(777), _reference().Kernel(777)
    assert np.array_equal(ours.alloc, theirs.alloc)
    assert np.array_equal(ours.used, theirs.used)
    assert ours.decide(cpu, memory) == theirs.decide(cpu, memory)


def _reference() -> Any:
    spec = importlib.util.spec_from_file_location("reference_kernel", REFERENCE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
