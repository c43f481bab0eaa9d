"""Random sequences of operations, on a real kube-apiserver and on the embedded one: both must say the same.

Equal are codes, `Status.reason`, the fields that causes name, the objects (without what each server chooses for
itself), the types and order of watch events, and the lists at the end. Bookmarks are ignored.
"""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from kubenexus.testing.controlplane import ControlPlane
from tests.contract.api import install_widgets
from tests.contract.embedded import client
from tests.contract.http import Http
from tests.contract.operations import Operation, sequences
from tests.contract.runs import Covered, Run, covered, table

COVERED: Covered = Counter()
MANY = 300


class Both(NamedTuple):
    real: Http
    embedded: Http


@pytest.fixture(scope="module")
def both(plane: ControlPlane) -> Iterator[Both]:
    real = Http.of_plane(plane)
    install_widgets(real)
    with client() as embedded:
        install_widgets(embedded)
        yield Both(real, embedded)
    real.ask("DELETE", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.contract.kubenexus.io")
    real.close()


PHASES = (Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink)


@settings(
    max_examples=MANY,
    deadline=None,
    derandomize=True,
    phases=PHASES,
    suppress_health_check=list(HealthCheck),
    database=None,
)
@given(sequences())
def test_both_servers_say_the_same(both: Both, sequence: list[Operation]) -> None:
    runs = [Run(http) for http in both]
    try:
        real, embedded = (run.tell(sequence) for run in runs)
    finally:
        for run in runs:
            run.close()
    COVERED.update(covered(real))
    for said, ours in zip(real.outcomes, embedded.outcomes, strict=True):
        assert said == ours
    assert real.events == embedded.events
    assert real.lists == embedded.lists


def test_what_was_covered(capsys: pytest.CaptureFixture[str]) -> None:
    """Prints the table; much of everything was tried, and at least three in ten were refused."""
    with capsys.disabled():
        print(f"\n{table(COVERED)}")
    total = sum(COVERED.values())
    refused = sum(count for (_, _, code), count in COVERED.items() if code >= 400)
    assert refused >= 0.3 * total
    assert {kind for kind, _, _ in COVERED} == {"pods", "nodes", "leases", "poddisruptionbudgets", "widgets"}
