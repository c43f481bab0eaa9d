"""Renders the golden vectors as docs/placement-golden.md: `python -m tests.plugins.workload.golden_page`."""

from tests.golden_vectors import render_page
from tests.plugins.workload.golden import SECTIONS

BUGS = {
    "X-1": "BackfillScoring and WorkloadAwareScoring added up to a constant. Ordinary pods are neutral to the first, "
    "and pods that fill gaps follow the strategy of their workload.",
    "X-2": "A pod of priority 0, which the API server gives to every pod, counted as preemptible.",
    "WA-1": "A node without GPUs never counted as more than 70 % in use. Cpu and memory count alone there.",
    "BF-2": "Ordinary pods kept off nodes that are reserved for better tenants, and pods that fill gaps did not.",
    "BF-3": "The same as WA-1.",
    "TH-1": "Pods without GPUs were drawn to the nodes with the best GPUs.",
    "TH-2": "`gold`, `silver` and `bronze` were no hardware tiers.",
    "TH-3": "The label `hardware.kubenexus.io/gpu-tier` was not read.",
    "TH-4": "Premium and standard GPUs were the same to bronze tenants: they took what was left of a premium node "
    "while standard GPUs were free. This is ours, and no bug of the register; `scores` restores the former points.",
}
_HEAD = """# Golden vectors of the rules about workloads and tenants

The first KubeNexus, written in Go, comes with examples of its scores. Each row of these tables has the case, its answer
and ours. Where they differ, the last column has the bug that the difference mends; the bugs are listed at the end. How
pods are placed by all rules together is in [placement.md](placement.md).

This page is generated from [the vectors](../tests/plugins/workload/golden.py) by `make docs`, and a test computes each.
"""


def render() -> str:
    """Returns the page."""
    return render_page(_HEAD, SECTIONS, BUGS)


if __name__ == "__main__":
    print(render(), end="")
