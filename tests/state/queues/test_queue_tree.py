"""The tree of queues: who is in which queue, what each uses, and which limit is reached first."""

import pytest

from kubenexus.state.ledger import Ledger
from kubenexus.state.queues.linked_queues import MAX_DEPTH
from kubenexus.state.queues.queue_node import BORROWING, GUARANTEED, WITHOUT_WEIGHT, QueueNode, Share
from kubenexus.testing.builders import a_node, a_pod
from tests.state.queues.queue_objects import a_queue, added_up, used

GPU = "nvidia.com/gpu"


def a_ledger(*queues: object, nodes: int = 1, **namespaces: dict[str, str]) -> Ledger:
    ledger = Ledger()
    for i in range(nodes):
        ledger.upsert_node(a_node(f"n{i}", cpu="10", memory="10Gi"))
    for name, labels in namespaces.items():
        ledger._namespace(name, labels)
    for queue in queues:
        ledger.queues.set_queue(queue)  # type: ignore[arg-type]
    return ledger


def bind(ledger: Ledger, name: str, namespace: str, cpu: str = "1") -> str:
    pod = a_pod(name, namespace=namespace, node="n0", cpu=cpu)
    ledger.upsert_pod(pod)
    return pod.key


@pytest.mark.parametrize(
    ("namespace", "queue"),
    [
        pytest.param("labelled", "research", id="the label of the namespace counts first"),
        pytest.param("listed", "training", id="then a queue that lists the namespace"),
        pytest.param("selected", "serving", id="then a queue that selects it"),
        pytest.param("lost", "default", id="a label that names no queue does not count"),
        pytest.param("plain", "default", id="all others are in the default queue"),
        pytest.param("unknown", "default", id="a namespace that is not known is in the default queue"),
    ],
)
def test_which_queue_takes_the_jobs_of_a_namespace(namespace: str, queue: str) -> None:
    ledger = a_ledger(
        a_queue("research"),
        a_queue("training", namespaces=["labelled", "listed"]),
        a_queue("serving", namespaceSelector={"matchLabels": {"kind": "web"}}),
        labelled={"scheduling.kubenexus.io/queue": "research", "kind": "web"},
        listed={"kind": "web"},
        selected={"kind": "web"},
        lost={"scheduling.kubenexus.io/queue": "nowhere"},
        plain={},
    )
    assert ledger.queues.queue_of(namespace).name == queue
    assert ledger.queues.is_mapped(namespace) == (queue != "default")


def test_a_pod_counts_in_its_namespace_and_in_all_queues_above() -> None:
    ledger = a_ledger(a_queue("all"), a_queue("ml", parent="all", namespaces=["a"]))
    bind(ledger, "p", "a", cpu="2")
    bind(ledger, "q", "b")
    assert used(ledger) == {
        "all": {"cpu": 2000, "pods": 1},
        "ml": {"cpu": 2000, "pods": 1},
        "default": {"cpu": 1000, "pods": 1},
    }


def test_queues_that_come_after_the_pods_count_them() -> None:
    ledger = a_ledger()
    bind(ledger, "p", "a")
    assert not ledger.queues.is_active
    ledger.queues.set_queue(a_queue("ml", namespaces=["a"]))
    assert used(ledger) == {"ml": {"cpu": 1000, "pods": 1}}


def test_what_a_namespace_uses_moves_with_it_to_another_queue() -> None:
    ledger = a_ledger(a_queue("ml"), a_queue("web"), a={"scheduling.kubenexus.io/queue": "ml"})
    bind(ledger, "p", "a")
    ledger._namespace("a", {"scheduling.kubenexus.io/queue": "web"})
    assert used(ledger) == {"web": {"cpu": 1000, "pods": 1}}


def test_without_the_last_queue_nothing_is_counted() -> None:
    ledger = a_ledger(a_queue("ml", namespaces=["a"]))
    key = bind(ledger, "p", "a")
    ledger.queues.remove_queue("ml")
    assert not ledger.queues.is_active
    ledger.remove_pod(key)
    assert not ledger.queues.root.used


def test_namespaces_of_a_queue_with_children_are_beside_these() -> None:
    ledger = a_ledger(a_queue("all", namespaces=["a"]), a_queue("ml", parent="all", namespaces=["b"]))
    bind(ledger, "p", "a")
    bind(ledger, "q", "b")
    own = ledger.queues.queue_of("a")
    assert own.parent is not None
    assert (own.parent.name, own.parent.used, own.used) == (
        "all",
        {"cpu": 2000, "pods": 2},
        {"cpu": 1000, "pods": 1},
    )


@pytest.mark.parametrize(
    ("queues", "warning"),
    [
        pytest.param([a_queue("a", parent="b")], "its parent b does not exist", id="a parent that is missing"),
        pytest.param([a_queue("a", parent="b"), a_queue("b", parent="a")], "below itself", id="a cycle"),
        pytest.param(
            [a_queue(f"q{i}", parent=f"q{i - 1}" if i else "") for i in range(MAX_DEPTH + 1)],
            "above one another",
            id="too many levels",
        ),
    ],
)
def test_a_queue_that_cannot_be_below_its_parent_is_at_the_top(queues: list[object], warning: str) -> None:
    ledger = a_ledger(*queues)
    names = {node.name for node in ledger.queues.queues() if node.parent is ledger.queues.root}
    warnings = ledger.queues.take_warnings()
    assert {name.removeprefix("Queue ") for name in warnings} <= names
    assert all(warning in problem for problem in warnings.values())
    assert warnings
    assert not ledger.queues.take_warnings(), "each is reported once"


def share(used: dict[str, int], guaranteed: dict[str, int], weight: int = 1) -> Share:
    node = QueueNode("q")
    node.used, node.guaranteed, node.weight = used, guaranteed, weight
    return node.share({"cpu": 1000.0, GPU: 10.0})


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(share({}, {}), Share(BORROWING, 0.0), id="nothing used and nothing guaranteed"),
        pytest.param(share({"cpu": 100, GPU: 5}, {}), Share(BORROWING, 0.5), id="the dominant resource counts"),
        pytest.param(share({"cpu": 100, GPU: 5}, {}, 2), Share(BORROWING, 0.25), id="by weight"),
        pytest.param(share({"cpu": 100}, {"cpu": 200}), Share(GUARANTEED, 0.5), id="below its guarantee"),
        pytest.param(share({"cpu": 300}, {"cpu": 200}), Share(BORROWING, 0.1), id="only what is borrowed counts"),
        pytest.param(
            share({"cpu": 200, GPU: 1}, {"cpu": 200, GPU: 2}), Share(BORROWING, 0.0), id="one guarantee is used up"
        ),
        pytest.param(share({"cpu": 100}, {}, 0), Share(WITHOUT_WEIGHT, 0.1), id="without weight it is the last"),
        pytest.param(share({}, {"cpu": 1}, 0), Share(GUARANTEED, 0.0), id="a guarantee counts without weight, too"),
        pytest.param(share({"example.com/x": 9}, {}), Share(BORROWING, 0.0), id="what no node offers does not count"),
    ],
)
def test_the_share_of_a_queue(found: Share, expected: Share) -> None:
    assert found == expected


def test_a_queue_has_at_least_the_guarantees_of_those_below() -> None:
    ledger = a_ledger(
        a_queue("all", guaranteed={"cpu": 1, "memory": 7}),
        a_queue("a", parent="all", guaranteed={"cpu": 2}),
        a_queue("b", parent="all", guaranteed={"cpu": 3}),
    )
    top = next(node for node in ledger.queues.queues() if node.name == "all")
    assert top.guaranteed == {"cpu": 5000, "memory": 7}


def test_the_lowest_limit_that_is_reached_is_named() -> None:
    ledger = a_ledger(
        a_queue("all", limit={"cpu": 4}),
        a_queue("ml", parent="all", limit={"cpu": 3}, namespaceLimit={"cpu": 2}, namespaces=["a", "b"]),
        a_queue("web", parent="all", namespaces=["c"]),
    )
    tree = ledger.queues

    def reached(namespace: str, cpu: int) -> tuple[str, int, int] | None:
        found = tree.reached_limit(namespace, (("cpu", cpu),), 1)
        return None if found is None else (found.node.name, found.used, found.most)

    assert reached("a", 2000) is None
    assert reached("a", 2001) == ("a", 0, 2000)
    bind(ledger, "p", "a", cpu="2")
    assert reached("a", 1) == ("a", 2000, 2000)
    assert reached("b", 1000) is None
    assert reached("b", 1001) == ("ml", 2000, 3000)
    assert reached("c", 2001) == ("all", 2000, 4000)
    assert reached("other", 100_000) is None


def test_the_number_of_pods_is_a_limit_too() -> None:
    ledger = a_ledger(a_queue("ml", limit={"pods": 1}, namespaces=["a"]))
    assert ledger.queues.reached_limit("a", (), 1) is None
    bind(ledger, "p", "a")
    found = ledger.queues.reached_limit("a", (), 1)
    assert found is not None
    assert (found.resource, found.used, found.most) == ("pods", 1, 1)


def test_what_a_queue_does_not_lend_is_kept_from_all_others_and_not_from_itself() -> None:
    ledger = a_ledger(
        a_queue("ml", guaranteed={"cpu": 6}, lendingLimit={"cpu": 2}, namespaces=["a"]),
        a_queue("web", namespaces=["b"]),
    )
    tree = ledger.queues
    assert tree.reached_limit("b", (("cpu", 6000),), 1) is None
    found = tree.reached_limit("b", (("cpu", 6001),), 1)
    assert found is not None
    assert (found.node, found.held, found.most) == (tree.root, 4000, 10_000)
    assert tree.reached_limit("a", (("cpu", 10_000),), 1) is None
    bind(ledger, "p", "a", cpu="3")
    found = tree.reached_limit("b", (("cpu", 6001),), 1)
    assert found is not None
    assert (found.used, found.held) == (3000, 1000)


def test_within_a_queue_the_guarantee_of_a_sibling_is_kept_as_well() -> None:
    ledger = a_ledger(
        a_queue("all", guaranteed={"cpu": 6}, limit={"cpu": 6}),
        a_queue("ml", parent="all", guaranteed={"cpu": 4}, lendingLimit={"cpu": 0}, namespaces=["a"]),
        a_queue("web", parent="all", namespaces=["b"]),
    )
    assert ledger.queues.reached_limit("b", (("cpu", 2000),), 1) is None
    found = ledger.queues.reached_limit("b", (("cpu", 2001),), 1)
    assert found is not None
    assert (found.node.name, found.held) == ("all", 4000)


def test_a_namespace_that_is_gone_is_forgotten_with_its_last_pod() -> None:
    ledger = a_ledger(a_queue("ml"), a={"scheduling.kubenexus.io/queue": "ml"})
    key = bind(ledger, "p", "a")
    ledger._namespace("a", None)
    assert added_up(ledger) == used(ledger)
    ledger.remove_pod(key)
    assert not list(ledger.queues.namespaces())
