"""Renders the golden vectors as docs/numa-golden.md: `python -m tests.plugins.numa.golden_page`."""

from tests.golden_vectors import render_page
from tests.plugins.numa.golden import SECTIONS

BUGS = {
    "NUMA-1": "The annotations of the README were read by nothing.",
    "NUMA-2": "Running pods took nothing of a NUMA node.",
    "NUMA-3": "Members of a gang were recorded while nodes were scored, without their node, and never removed.",
    "NUMA-4": "A node that fits could score less than one that does not.",
    "NUMA-5": "The emptiest NUMA node had most points; documented are 50 to 70 percent of use.",
    "NUMA-6": "GiB a core were divided as integers.",
    "NUMA-7": "NUMA nodes to be avoided counted in the score only.",
    "NUMA-8": "Lists of CPUs need commas, which no label value can have, and annotations were not read.",
    "NUMA-9": "Memory had to be a plain number of bytes; a quantity made the NUMA node unknown.",
    "NUMA-10": "GPUs of a NUMA node counted though pods held them.",
}
_HEAD = """# Golden vectors of NUMATopology

The first KubeNexus, written in Go, comes with examples of its answers. Each row of these tables has the case, its
answer and ours. Where they differ, the last column has the bug that the difference mends; the bugs are listed at the
end. How the rules work: [NUMATopology](plugins/numatopology.md).

This page is generated from [the vectors](../tests/plugins/numa/golden.py) by `make docs`, and a test computes each.
"""


def render() -> str:
    """Returns the page."""
    return render_page(_HEAD, SECTIONS, BUGS)


if __name__ == "__main__":
    print(render(), end="")
