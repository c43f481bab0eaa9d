"""Terms that pods carry against others: which label keys they ask about is known at any time, and cheaply."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.api.selectors import Selector
from kubenexus.state.ledger import Ledger
from kubenexus.state.podterms import Kind
from kubenexus.testing.builders import HOSTNAME, a_node, a_pod
from kubenexus.testing.harness import a_ledger

KEYS = ("app", "tier", "team")
STEPS = st.tuples(st.sampled_from(["runs", "waits for the node", "gone"]), st.integers(0, 3), st.sampled_from(KEYS))


def avoiding(number: int, key: str, **fields: Any) -> Any:
    return a_pod(f"p{number}", apart=[f"{key}=x per {HOSTNAME}"], **fields)


def asked_about(ledger: Ledger) -> set[str]:
    """The same by looking at every pod."""
    records = [*ledger.pods.values(), *ledger._nominations.on("n").values()]
    return {key for r in records for each in r.terms if each.kind is Kind.MUST_AVOID for key in each.term.selector.keys}


@given(st.lists(STEPS, max_size=20))
def test_the_keys_are_those_that_pods_who_run_or_are_nominated_ask_about(steps: list[tuple[str, int, str]]) -> None:
    ledger = a_ledger([a_node("n")])
    for what, number, key in steps:
        if what == "gone":
            ledger.pod_gone(f"default/p{number}")
        elif what == "runs":
            ledger.pod_seen(avoiding(number, key, node="n"))
        else:
            ledger.pod_seen(avoiding(number, key, nominated="n"))
        assert ledger.nodes.pods.carrier_keys == asked_about(ledger)


def test_a_term_of_its_own_costs_the_same_however_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger, reads = a_ledger([a_node("n")]), list[str]()

    def keys(selector: Selector) -> frozenset[str]:
        reads.append(selector.text)
        return frozenset(each.key for each in selector.requirements)

    monkeypatch.setattr(Selector, "keys", property(keys))
    for number in range(100):
        ledger.pod_seen(a_pod(f"p{number}", node="n", apart=[f"app=a{number} per {HOSTNAME}"]))
    first = len(reads)
    for number in range(100, 200):
        ledger.pod_seen(a_pod(f"p{number}", node="n", apart=[f"app=a{number} per {HOSTNAME}"]))
    assert len(reads) == 2 * first
    assert len(ledger.nodes.pods.carriers) == 200
