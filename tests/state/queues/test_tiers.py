"""Amounts by hardware tier: what counts where, which tiers are closed to a job, and what moves when a node does."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.base.errors import Malformed
from kubenexus.state.ledger import Ledger
from kubenexus.testing.builders import a_node, a_pod
from tests.state.queues.queue_objects import a_queue, used

GPU, TIER = "nvidia.com/gpu", "hardware.kubenexus.io/tier"
TIERS = ("premium", "standard", "economy", "")


def a_tier_node(name: str, tier: str, gpus: int = 8) -> Any:
    return a_node(name, cpu="100", labels={TIER: tier} if tier else {}, gpu=gpus)


def a_ledger(*queues: Any, **tiers: str) -> Ledger:
    ledger = Ledger()
    for name, tier in (tiers or {"p": "premium", "e": "economy"}).items():
        ledger.upsert_node(a_tier_node(name, tier))
    for queue in queues:
        ledger.queues.set_queue(queue)
    return ledger


def bind(ledger: Ledger, name: str, node: str, gpus: int = 1, namespace: str = "a") -> None:
    ledger.upsert_pod(a_pod(name, namespace=namespace, node=node, cpu="1", gpu=gpus))


def limits(**tiers: int) -> dict[str, Any]:
    return {"tiers": {tier: {"limit": {GPU: amount}} for tier, amount in tiers.items()}}


def test_a_pod_counts_in_the_tier_of_its_node() -> None:
    ledger = a_ledger(a_queue("ml", namespaces=["a"], **limits(premium=4, standard=4)))
    bind(ledger, "x", "p", 2)
    bind(ledger, "y", "e", 3)
    assert used(ledger)["ml"] == {GPU: 5, f"{GPU}@premium": 2, "cpu": 2000, "pods": 2}, "no queue asks for economy"


def test_a_node_that_changes_takes_what_is_used_there_along() -> None:
    ledger = a_ledger(a_queue("ml", namespaces=["a"], **limits(premium=4, economy=4)))
    bind(ledger, "x", "p", 2)
    ledger.upsert_node(a_tier_node("p", "economy"))
    assert used(ledger)["ml"][f"{GPU}@economy"] == 2
    ledger.remove_node("p")
    assert not any("@" in name for name in used(ledger)["ml"]), "a node that is not known has no tier"
    ledger.upsert_node(a_tier_node("p", "premium"))
    assert used(ledger)["ml"][f"{GPU}@premium"] == 2


def closed(ledger: Ledger, gpus: int, namespace: str = "a") -> dict[str, str]:
    found = ledger.queues.closed_tiers(namespace, ((GPU, gpus),), 1)
    return {tier: limit.node.name for tier, limit in found.items()}


def test_a_tier_is_closed_where_the_job_would_exceed_a_limit_of_it() -> None:
    ledger = a_ledger(a_queue("ml", namespaces=["a"], **limits(premium=4, economy=6)), a_queue("web"))
    bind(ledger, "x", "p", 2)
    tree = ledger.queues
    assert closed(ledger, 2) == {}
    assert closed(ledger, 3) == {"premium": "ml"}
    assert tree.reached_limit("a", ((GPU, 3),), 1) is None, "the other tier is open"
    assert closed(ledger, 7) == {"economy": "ml", "premium": "ml"}
    found = tree.reached_limit("a", ((GPU, 7),), 1)
    assert found is not None
    assert len(found.tiers) == 2
    assert closed(ledger, 7, "other") == {}
    assert tree.closed_tiers("a", (("cpu", 99),), 1) == {}, "it asks for nothing that has a limit by tier"


def test_a_tier_without_such_nodes_does_not_count_as_open() -> None:
    ledger = a_ledger(a_queue("ml", namespaces=["a"], **limits(premium=4)), p="premium", s="standard")
    assert ledger.queues.reached_limit("a", ((GPU, 5),), 1) is None
    ledger.remove_node("s")
    assert ledger.queues.reached_limit("a", ((GPU, 5),), 1) is not None
    ledger.upsert_node(a_node("plain", cpu="100"))
    assert ledger.queues.reached_limit("a", ((GPU, 5),), 1) is not None, "a node without GPUs is no other place"


def test_what_a_queue_does_not_lend_of_a_tier_is_kept_there_alone() -> None:
    keeps = {"tiers": {"premium": {"guaranteed": {GPU: 6}, "lendingLimit": {GPU: 0}}}}
    ledger = a_ledger(a_queue("ml", namespaces=["a"], **keeps), a_queue("web", namespaces=["b"]))
    assert closed(ledger, 2, "b") == {}
    assert closed(ledger, 3, "b") == {"premium": ""}
    bind(ledger, "x", "p", 4)
    assert closed(ledger, 2, "b") == {}
    assert closed(ledger, 3, "b") == {"premium": ""}
    assert closed(ledger, 4, "a") == {}


def test_guarantees_of_tiers_are_part_of_that_of_all_nodes_and_of_the_queue_above() -> None:
    tiers = {"premium": {"guaranteed": {GPU: 3}}, "economy": {"guaranteed": {GPU: 2}}}
    ledger = a_ledger(a_queue("top"), a_queue("ml", parent="top", guaranteed={GPU: 4}, tiers=tiers))
    for node in ledger.queues.queues():
        if node.name != "default":
            assert node.guaranteed == {GPU: 5}
            assert node.guaranteed_by_tier == {f"{GPU}@premium": 3, f"{GPU}@economy": 2}


@pytest.mark.parametrize(
    ("tiers", "problem"),
    [
        pytest.param({"gold": {}}, r"spec.tiers\[gold\]: must be premium, standard or economy", id="no tier"),
        pytest.param(
            {"premium": {"guaranteed": {GPU: 2}, "limit": {GPU: 1}}},
            r"spec.tiers\[premium\].limit\[nvidia.com/gpu\]: must not be less than what is guaranteed",
            id="a limit below the guarantee",
        ),
        pytest.param({"economy": {"limit": {GPU: "x"}}}, r"spec.tiers\[economy\].limit", id="no amount"),
    ],
)
def test_tiers_that_cannot_be_used_are_said_with_their_place(tiers: Any, problem: str) -> None:
    with pytest.raises(Malformed, match=problem):
        a_queue("ml", tiers=tiers)


def test_a_limit_that_is_less_than_what_tiers_guarantee_is_an_error() -> None:
    with pytest.raises(Malformed, match="must not be less than what is guaranteed"):
        a_queue("ml", limit={GPU: 2}, tiers={"premium": {"guaranteed": {GPU: 3}}})


def added_up(ledger: Ledger, names: set[str]) -> dict[str, int]:
    """What namespace a uses of the resources of tiers, by adding up all pods."""
    sums: Counter[str] = Counter()
    for record in ledger.pods.values():
        row = ledger.nodes.row_of.get(record.node)
        tier = "" if row is None else ledger.nodes.labels.of_row(row).get(TIER, "")
        for resource, amount in (*record.footprint.amounts, ("pods", 1)):
            name = f"{resource}@{tier}"
            if record.namespace == "a" and name in names:
                sums[name] += amount
    return dict(+sums)


ops = st.lists(
    st.tuples(
        st.sampled_from(("bind", "bind", "remove", "assume", "node", "gone", "queue", "drop")),
        st.sampled_from(("x", "y", "z")),
        st.sampled_from(("p", "e")),
        st.sampled_from(TIERS),
        st.integers(1, 3),
    ),
    max_size=14,
)


@given(ops)
def test_f36_what_counts_in_a_tier_is_what_its_nodes_have_after_each_change(steps: list[Any]) -> None:
    ledger = a_ledger(a_queue("other"))
    for op, name, node, tier, number in steps:
        key = f"a/{name}"
        if op == "bind":
            bind(ledger, name, node, number)
        elif op == "remove":
            ledger.remove_pod(key)
        elif op == "assume" and key not in ledger.pods and node in ledger.nodes.row_of:
            ledger.assume(a_pod(name, namespace="a", cpu="1", gpu=number), node, 0.0)
        elif op == "node":
            ledger.upsert_node(a_tier_node(node, tier))
        elif op == "gone":
            ledger.remove_node(node)
        elif op == "queue":
            resource = GPU if number > 1 else "pods"
            more = {"tiers": {tier: {"limit": {resource: number}}}} if tier else {}
            ledger.queues.set_queue(a_queue("ml", namespaces=["a"], **more))
        elif op == "drop":
            ledger.queues.remove_queue("ml")
        node_of_a = ledger.queues.namespace("a")
        found = {name: amount for name, amount in node_of_a.used.items() if "@" in name}
        assert found == added_up(ledger, set(ledger.queues._tiers.names))
        above = ledger.queues.queue_of("a")
        assert {name: amount for name, amount in above.used.items() if "@" in name} == found
