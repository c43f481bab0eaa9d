"""Renders the golden vectors as docs/devices-golden.md: `python -m tests.plugins.devices.golden_page`."""

from tests.golden_vectors import render_page
from tests.plugins.devices.golden import SECTIONS

BUGS = {
    "VRAM-1": "`vram-request` meant one GPU or all together, by its size. It is for each GPU; `vram-request-total` is "
    "for all.",
    "VRAM-2": "A pod that needs more than one GPU's memory got no points for GPUs that are large or together.",
    "VRAM-6": "A switch that is not known was taken to be the model of the GPU.",
    "VRAM-7": "One GPU with enough peers was taken for an island. The free GPUs must be linked with each other.",
    "VRAM-8": "GPUs that are taken counted as free.",
    "VRAM-9": "The memory came from parts of the model's name.",
    "VRAM-10": "`GB` was no unit, so the pod counted as one that states nothing.",
    "VRAM-11": "20 points were subtracted below 30% for all tiers, though the table of bronze tenants goes to 20%.",
    "FRAG-1": "A pod that takes exactly what is free got fewer points than one that leaves some.",
    "FRAG-2": "Training pods got few points for islands in use.",
    "FRAG-3": "A label that had gone stale was believed before the pods of the node.",
    "FRAG-6": "Pods without GPUs were not kept away from nodes with GPUs.",
    "FRAG-7": "All GPUs of a node were one island.",
    "FRAG-8": "Nodes on which the pod does not fit got points.",
}
_HEAD = """# Golden vectors of the rules about devices

The first KubeNexus, written in Go, comes with examples of its scores. Each row of these tables has the case, its answer
and ours. Where they differ, the last column has the bug that the difference mends; the bugs are listed at the end. How
the rules work is in the docstrings of [their modules](../src/kubenexus/plugins/devices).

This page is generated from [the vectors](../tests/plugins/devices/golden.py) by `make docs`, and a test computes each.
"""


def render() -> str:
    """Returns the page."""
    return render_page(_HEAD, SECTIONS, BUGS)


if __name__ == "__main__":
    print(render(), end="")
