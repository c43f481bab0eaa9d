"""Renders the golden vectors as docs/fabric-golden.md: `python -m tests.plugins.network_fabric.golden_page`."""

from tests.golden_vectors import render_page
from tests.plugins.network_fabric.golden import SECTIONS

BUGS = {
    "NET-3": "`min-fabric-tier` was a score, and only for members of a gang after the first.",
    "NET-4": "Points for a fabric alone reached 100, so that closeness made no difference. Each is half of the score.",
    "NET-8": "A node without a label lost nothing where members of the job have one.",
    "TS-1": "Nodes were counted instead of pods: all services went to the smallest zone.",
}
_HEAD = """# Golden vectors of the rules about fabrics and zones

The first KubeNexus, written in Go, comes with examples of its scores. Each row of these tables has the case, its answer
and ours. Where they differ, the last column has the bug that the difference mends; the bugs are listed at the end. How
the rules work: [NetworkFabricScore](plugins/networkfabricscore.md), [TopologyScoring](plugins/topologyscoring.md).

This page is generated from [the vectors](../tests/plugins/network_fabric/golden.py) by `make docs`, and a test computes
each.
"""


def render() -> str:
    """Returns the page."""
    return render_page(_HEAD, SECTIONS, BUGS)


if __name__ == "__main__":
    print(render(), end="")
