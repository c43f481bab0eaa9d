"""Random sequences on the embedded server alone: what it says must agree with itself.

`tests/e2e/test_contract_sequences.py` runs the same sequences on a real server as well and compares.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from tests.contract.api import install_widgets
from tests.contract.embedded import client
from tests.contract.http import Http
from tests.contract.operations import Operation, sequences
from tests.contract.runs import Covered, Run, Told, covered, table
from tests.rounds import rounds

COVERED: Covered = Counter()


@pytest.fixture(scope="module")
def http() -> Iterator[Http]:
    with client() as opened:
        install_widgets(opened)
        yield opened
    print(table(COVERED))


@settings(max_examples=rounds(30, 200), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(sequences())
def test_a_sequence_agrees_with_itself(http: Http, sequence: list[Operation]) -> None:
    run = Run(http)
    told = run.tell(sequence)
    run.close()
    COVERED.update(covered(told))
    refused = sum(1 for each in told.outcomes if each.code >= 400)
    assert refused >= 0.3 * len(sequence)
    assert all(each.code != 500 or not each.reason for each in told.outcomes), told.outcomes
    for kind, listed in told.lists.items():
        assert _replayed(told, kind) == listed


def _replayed(told: Told, kind: str) -> list[Any]:
    """What a watcher believes there is, after all events."""
    objects: dict[str, Any] = {}
    for type, name, item in told.events[kind]:
        assert (type == "ADDED") == (name not in objects), (type, name)
        objects[name] = item
        if type == "DELETED":
            del objects[name]
    return [_without_kind(kind, objects[name]) for name in sorted(objects)]


def _without_kind(kind: str, item: Any) -> Any:
    """Lists of most kinds leave it out."""
    hidden = () if kind == "widgets" else ("kind", "apiVersion")
    return {key: value for key, value in item.items() if key not in hidden}
