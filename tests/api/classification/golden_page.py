"""Renders the golden vectors as docs/classification-golden.md: `python -m tests.api.classification.golden_page`."""

from tests.api.classification.golden import SECTIONS
from tests.golden_vectors import render_page

BUGS = {
    "CLS-1": "Of the values of `workload.kubenexus.io/type` only `batch`, in lower case, was packed, and an invalid "
    "one made the kind unknown. An invalid value is as good as none.",
    "CLS-2": "The labels and owners of common operators were not known, so their pods were services.",
    "PC-1": "The labels of gangs that the documents show were not read.",
    "PC-2": "A part of a word counted as a word, and the tag of an image as its name.",
    "PC-3": "What operators write on their pods was read too late, or not at all.",
    "PC-4": "The labels of pods that fill gaps were not read.",
    "X-2": "The API server gives each pod a priority, mostly 0, and those up to 100 were preemptible.",
    "X-3": "Each plugin had its own idea of a gang. One resolver serves all, and a gang needs a minimum.",
    "X-6": "Only `nvidia.com/gpu` counted.",
}
_HEAD = """# Golden vectors of classification

The first KubeNexus, written in Go, comes with rules for the kind of work of a pod. Each row of these tables has a case,
its answer and ours. Where they differ, the last column has the bug that the difference mends; the bugs are listed at
the end. How a pod's kind is found is in [classification.md](classification.md).

This page is generated from [the vectors](../tests/api/classification/golden.py) by `make docs`, and a test computes
each.
"""


def render() -> str:
    """Returns the page."""
    return render_page(_HEAD, SECTIONS, BUGS)


if __name__ == "__main__":
    print(render(), end="")
