"""What queues use is the sum of the live pods, whichever way a pod came or went and whatever changed meanwhile."""

import contextlib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kubenexus.base.errors import Malformed
from kubenexus.state.ledger import Ledger
from kubenexus.testing.builders import a_node, a_pod
from tests.state.queues.queue_objects import a_queue, added_up, used

QUEUE = "scheduling.kubenexus.io/queue"
NAMES, SPACES, QUEUES = ("p", "q", "r"), ("a", "b", "c"), ("ml", "web", "all")
OPS = ("bind", "assume", "forget", "remove", "finish", "again", "grow", "break", "queue", "drop", "move", "namespace")
Op = tuple[str, str, str, int]


def a_ledger() -> Ledger:
    ledger = Ledger()
    for name in ("n0", "n1"):
        ledger.upsert_node(a_node(name, cpu="100", memory="10Gi"))
    return ledger


def apply(ledger: Ledger, op: str, name: str, space: str, number: int) -> None:
    if op in ("queue", "drop", "move", "namespace"):
        configure(ledger, op, space, number)
        return
    key, node, cpu = f"{space}/{name}", f"n{number % 2}", str(number % 3 + 1)
    if op == "assume" and key not in ledger.pods:
        ledger.assume(a_pod(name, namespace=space, cpu=cpu), node, 0.0)
    elif op == "forget":
        ledger.forget(key)
    elif op == "remove":
        ledger.remove_pod(key)
    else:
        more = {"finish": {"phase": "Succeeded"}, "again": {"uid": f"uid-{number}"}, "grow": {"cpu": "7"}}
        fields: dict[str, Any] = {"cpu": cpu} | more.get(op, {"cpu": "x"} if op == "break" else {})
        with contextlib.suppress(Malformed):
            ledger.upsert_pod(a_pod(name, namespace=space, node=node, **fields))


def configure(ledger: Ledger, op: str, space: str, number: int) -> None:
    queue = QUEUES[number % 3]
    if op == "queue":
        parent = QUEUES[(number + 1) % 3]
        ledger.queues.set_queue(a_queue(queue, parent=parent, namespaces=[space], lendingLimit={"cpu": 0}))
    elif op == "drop":
        ledger.queues.remove_queue(queue)
    else:
        ledger._namespace(space, {QUEUE: queue} if op == "move" else None)


ops = st.lists(
    st.tuples(st.sampled_from(OPS), st.sampled_from(NAMES), st.sampled_from(SPACES), st.integers(0, 5)), max_size=16
)


@given(ops)
def test_f36_the_usage_of_queues_is_that_of_the_live_pods_after_each_way_out(steps: list[Op]) -> None:
    ledger = a_ledger()
    ledger.queues.set_queue(a_queue("ml", namespaces=["a"]))
    for step in steps:
        apply(ledger, *step)
        if ledger.queues.is_active:
            assert used(ledger) == added_up(ledger)
            kept = {r: amount for r, amount in ledger.queues.root.held_below.items() if amount < 0}
            assert not kept


@given(ops)
def test_all_pods_gone_nothing_is_used_and_no_namespace_is_kept(steps: list[Op]) -> None:
    ledger = a_ledger()
    for step in steps:
        apply(ledger, *step)
    for key in list(ledger.pods):
        ledger.remove_pod(key)
    for space in SPACES:
        ledger._namespace(space, None)
    ledger.queues.set_queue(a_queue("last"))
    assert used(ledger) == {}
    assert not list(ledger.queues.namespaces())


def test_f12_a_pod_that_runs_with_more_than_it_was_placed_with_counts_with_what_it_has() -> None:
    ledger = a_ledger()
    ledger.queues.set_queue(a_queue("ml", namespaces=["a"], limit={"cpu": 2}))
    ledger.assume(a_pod("p", namespace="a", cpu="1"), "n0", 0.0)
    assert ledger.queues.reached_limit("a", (("cpu", 1000),), 1) is None
    ledger.upsert_pod(a_pod("p", namespace="a", node="n0", cpu="3"))
    found = ledger.queues.reached_limit("a", (("cpu", 1000),), 1)
    assert found is not None
    assert (found.used, found.most) == (3000, 2000), "beyond the limit, and said so"
    ledger.remove_pod("a/p")
    assert ledger.queues.reached_limit("a", (("cpu", 2000),), 1) is None, "nothing is left of it"


def test_f23_what_two_queues_claim_counts_once() -> None:
    ledger = a_ledger()
    ledger._namespace("a", {"team": "x"})
    selector = {"matchLabels": {"team": "x"}}
    for name in ("ml", "web"):
        ledger.queues.set_queue(a_queue(name, namespaces=["a"], namespaceSelector=selector))
    ledger.upsert_pod(a_pod("p", namespace="a", node="n0", cpu="1"))
    assert used(ledger) == {"ml": {"cpu": 1000, "pods": 1}}
    assert ledger.queues.root.used == {"cpu": 1000, "pods": 1}
    ledger.upsert_node(a_node("n0", cpu="100", memory="10Gi", labels={"again": "yes"}))
    ledger.queues.settle()
    assert ledger.queues.totals["cpu"] == 200_000.0, "a node that changes counts once"
