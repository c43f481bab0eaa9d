"""Small jobs leave whole nodes to large ones: four nodes with 8 GPUs, a hundred jobs of 1, 2 and 8."""

from pathlib import Path
from typing import Any

import msgspec
from click.testing import CliRunner

from kubenexus.cli import main

SLOTS = Path(__file__).parents[3] / "examples" / "traces" / "slots.jsonl"


def test_jobs_with_8_gpus_wait_half_as_long_as_with_kube_scheduler_at_most_and_no_gpu_is_used_less() -> None:
    policies = ["--policy", "shipped", "--policy", "kube-scheduler"]
    done = CliRunner().invoke(main, ["simulate", "trace", str(SLOTS), *policies, "--output", "json"])
    ours, theirs = (msgspec.json.decode(line, type=dict[str, Any]) for line in done.stdout.splitlines())
    assert ours["placed"] == theirs["placed"] == 100
    for figure in ("mean", "p50", "p95", "p99"):
        assert ours["wait"]["8"][figure] <= 0.5 * theirs["wait"]["8"][figure]
    assert ours["utilisation"] >= theirs["utilisation"]
