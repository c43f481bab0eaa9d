"""Every file of the sample: no answer of ours differs from Kubernetes', and none is passed over in silence."""

from pathlib import Path

import pytest

from kubenexus.testing.oracle.compare_run import Task, run
from kubenexus.testing.oracle.comparison_counts import Key
from kubenexus.testing.oracle.report import findings
from tests.rounds import rounds

FOLDER = Path(__file__).parent / "data"

# Every third recorded case: `make oracle` and a thorough run compare all of them.
EVERY = rounds(3, 1)
# The kinds of files and into how many tests each is cut, the longest first, so that several processes share the work.
PARTS = {
    "mixed": 2,
    "preemption": 1,
    "volumes": 1,
    "dra": 1,
    "resources": 1,
    "spread": 1,
    "podaffinity": 1,
    "taints": 1,
    "nodeaffinity": 1,
    "image": 1,
    "mini": 1,
    "vectors-requests": 1,
    "vectors-selectors": 1,
    "vectors-nodeselectors": 1,
    "vectors-quantities": 1,
}
TASKS = [
    pytest.param(kind, part, id=kind if parts == 1 else f"{kind}-{part + 1}of{parts}")
    for kind, parts in PARTS.items()
    for part in range(parts)
]


@pytest.mark.parametrize(("kind", "part"), TASKS)
def test_nothing_differs(kind: str, part: int) -> None:
    tally = run(Task(FOLDER / f"{kind}.json.gz", part, PARTS[kind] * EVERY))
    said = "\n".join(findings(tally))
    assert tally.agreed, said
    assert tally.held[Key(kind, "case")] > 0
    assert tally.held.total() == tally.compared.total() + tally.not_compared.total(), said


def test_every_recorded_file_is_among_these() -> None:
    assert {file.name.removesuffix(".json.gz") for file in FOLDER.glob("*.json.gz")} == set(PARTS)
