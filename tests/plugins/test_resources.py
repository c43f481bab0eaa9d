"""NodeResourcesFit and BalancedAllocation by hand: small numbers that anybody can check, and the edges."""

from typing import Any

import pytest

from kubenexus.api.core import Node, Pod
from kubenexus.base.errors import Malformed
from kubenexus.framework.verdict import MAX_REASONS, Code
from kubenexus.plugins import BUILT_IN
from kubenexus.plugins.node_resources import fit
from kubenexus.testing.builders import a_container, a_device_class, a_node, a_pod
from kubenexus.testing.harness import CheckedCluster, a_ledger, run
from kubenexus.testing.reference_check import ACCEPTED, assert_matches_reference, plugin_answers
from tests.plugins.reference import NodeResourcesBalancedAllocation

HALF = a_pod("q", node="n1", cpu=2, memory="2Gi")
NODE = a_node("n1", cpu=4, memory="8Gi", resources={"example.com/gpu": 4})


def score(plugin: str, pod: Pod, running: list[Pod], args: dict[str, Any], node: Node = NODE) -> int:
    answers = plugin_answers(BUILT_IN[plugin](args), pod, a_ledger([node], running))
    assert answers.scores is not None
    return answers.scores["n1"]


def strategy(kind: str, *resources: tuple[str, int], shape: list[tuple[int, int]] | None = None) -> dict[str, Any]:
    return {
        "scoringStrategy": {
            "type": kind,
            "resources": [{"name": name, "weight": weight} for name, weight in resources],
            "requestedToCapacityRatio": {"shape": [{"utilization": x, "score": y} for x, y in shape or []]},
        }
    }


CPU_MEMORY = (("cpu", 1), ("memory", 1))
LINE, V = [(0, 0), (100, 10)], [(0, 10), (50, 0), (100, 10)]


@pytest.mark.parametrize(
    ("pod", "args", "expected"),
    [
        # 2 + 1 of 4 cores, 2 + 2 of 8 GiB would be taken: 25 % and 50 % stay free.
        pytest.param({"cpu": 1, "memory": "2Gi"}, {}, 37, id="the mean of what stays free, rounded down"),
        pytest.param({"cpu": 1, "memory": "2Gi"}, strategy("MostAllocated"), 62, id="the mean of what is taken"),
        pytest.param(
            {"cpu": 1, "memory": "2Gi"}, strategy("LeastAllocated", ("cpu", 3), ("memory", 1)), 31, id="weighted"
        ),
        pytest.param({"cpu": 3, "memory": "2Gi"}, {}, 25, id="a resource with too little counts as full"),
        pytest.param({"cpu": 3, "memory": "2Gi"}, strategy("MostAllocated"), 75, id="and no fuller than full"),
        pytest.param({}, {}, 59, id="asking for nothing counts as a tenth of a core and 200 MiB"),
        pytest.param({"cpu": 0, "memory": 0}, {}, 62, id="asking for 0 counts as 0"),
        pytest.param(
            {"cpu": 1}, strategy("LeastAllocated", ("example.com/gpu", 5), ("cpu", 1)), 25, id="what is not asked for"
        ),
        pytest.param(
            {"cpu": 1, "requests": {"example.com/gpu": 1}},
            strategy("LeastAllocated", ("example.com/gpu", 3), ("cpu", 1)),
            62,
            id="what is asked for",
        ),
        pytest.param(
            {"cpu": 1}, strategy("LeastAllocated", ("nobody/offers-this", 9), ("cpu", 1)), 25, id="what is not there"
        ),
        pytest.param(
            {"cpu": 1, "memory": "2Gi"},
            strategy("LeastAllocated", ("pods", 1), ("cpu", 1)),
            25,
            id="pods are no resource to score: upstream passes over them",
        ),
        pytest.param(
            {"cpu": 1, "memory": "2Gi"},
            strategy("RequestedToCapacityRatio", *CPU_MEMORY, shape=LINE),
            63,
            id="a line drawn by the user: (75 + 50) / 2, rounded half up",
        ),
        pytest.param(
            {"cpu": 1, "memory": "2Gi"},
            strategy("RequestedToCapacityRatio", *CPU_MEMORY, shape=V),
            50,
            id="a resource whose score is 0 is left out of the mean",
        ),
    ],
)
def test_fit_scores(pod: dict[str, Any], args: dict[str, Any], expected: int) -> None:
    assert score("NodeResourcesFit", a_pod("p", **pod), [HALF], args) == expected


@pytest.mark.parametrize(
    ("pod", "resources", "expected"),
    [
        # 50 % and 25 % are taken: 87 points for evenness.
        pytest.param({"cpu": 1, "memory": "2Gi"}, ["cpu", "memory"], 75, id="as uneven as before"),
        pytest.param({"memory": "2Gi"}, ["cpu", "memory"], 81, id="more even than before"),
        pytest.param({"cpu": 2}, ["cpu", "memory"], 62, id="less even than before"),
        pytest.param({"cpu": 99, "memory": "99Gi"}, ["cpu", "memory"], 81, id="over the brim on both sides is even"),
        pytest.param({"cpu": 1}, ["cpu"], 75, id="a single resource is always even"),
        pytest.param({"cpu": 1}, ["cpu", "memory", "example.com/gpu"], 69, id="an extended resource nobody asks for"),
        pytest.param({"cpu": 1}, ["cpu", "memory", "pods"], 69, id="pods are no resource to balance"),
        pytest.param(
            {"cpu": 1, "memory": "2Gi", "requests": {"example.com/gpu": 4}},
            ["cpu", "memory", "example.com/gpu"],
            75,
            id="three of them",
        ),
    ],
)
def test_balance(pod: dict[str, Any], resources: list[str], expected: int) -> None:
    args = {"resources": [{"name": name, "weight": 1} for name in resources]}
    assert score("NodeResourcesBalancedAllocation", a_pod("p", **pod), [HALF], args) == expected


def test_beyond_the_precision_of_floats_one_row_is_divided_as_all_rows_are() -> None:
    """As Go does: both numbers become floats first. A quotient of exact integers is rounded otherwise, now and then."""
    running = a_pod("q", node="n1", cpu=50, memory=807045053224801525 - 54)
    cluster = CheckedCluster.of([a_node("n1", cpu=100, memory=1152921504606859321)], [running])
    pod = a_pod("p", cpu=0, memory=54)
    assert_matches_reference(
        BUILT_IN["NodeResourcesBalancedAllocation"]({}), NodeResourcesBalancedAllocation(), pod, cluster
    )


@pytest.mark.parametrize(
    ("pod", "node", "running", "expected"),
    [
        pytest.param({"cpu": 4}, NODE, [], ACCEPTED, id="exactly what there is"),
        pytest.param({"cpu": 3}, NODE, [HALF], (Code.UNSCHEDULABLE, ("Insufficient cpu",)), id="somebody is there"),
        pytest.param({"cpu": 5}, NODE, [], (Code.UNRESOLVABLE, ("Insufficient cpu",)), id="no eviction could help"),
        pytest.param(
            {"cpu": 5, "memory": "7Gi"},
            NODE,
            [HALF],
            (Code.UNRESOLVABLE, ("Insufficient cpu", "Insufficient memory")),
            id="one hopeless reason makes the node hopeless",
        ),
        pytest.param(
            {},
            a_node("n1", pods=1),
            [HALF],
            (Code.UNSCHEDULABLE, ("Too many pods",)),
            id="too many pods is never hopeless",
        ),
        pytest.param(
            {}, a_node("n1", pods=0), [], (Code.UNSCHEDULABLE, ("Too many pods",)), id="not even on a node for none"
        ),
        pytest.param({"cpu": 0}, a_node("n1", cpu=1), [HALF], ACCEPTED, id="0 fits on an overcommitted node"),
        pytest.param(
            {"requests": {"nobody/offers-this": 1}},
            NODE,
            [],
            (Code.UNRESOLVABLE, ("Insufficient nobody/offers-this",)),
            id="a resource no node ever offered",
        ),
        pytest.param(
            {
                "containers": [a_container(cpu=1)],
                "sidecars": [a_container("s", cpu=2)],
                "init": [a_container("i", cpu=2)],
            },
            NODE,
            [],
            ACCEPTED,
            id="sidecars and containers together, init containers with the sidecars before them",
        ),
    ],
)
def test_fit(pod: dict[str, Any], node: Node, running: list[Pod], expected: Any) -> None:
    answers = plugin_answers(BUILT_IN["NodeResourcesFit"]({}), a_pod("p", **pod), a_ledger([node], running))
    assert answers.refusals == {"n1": expected}


def test_a_resource_that_a_device_class_backs_is_not_fits_to_judge_where_no_device_plugin_offers_it() -> None:
    nodes = [a_node("n1"), a_node("n2", resources={"example.com/gpu": 1})]
    ledger = a_ledger(nodes, device_classes=[a_device_class("c", resource="example.com/gpu")])
    pod = a_pod("p", requests={"example.com/gpu": 2})
    refusals = plugin_answers(BUILT_IN["NodeResourcesFit"]({}), pod, ledger).refusals
    assert refusals == {"n1": ACCEPTED, "n2": (Code.UNRESOLVABLE, ("Insufficient example.com/gpu",))}


@pytest.mark.parametrize(
    "args",
    [strategy("FullestFirst"), strategy("RequestedToCapacityRatio")],
    ids=["an unknown strategy", "a line without points"],
)
def test_a_strategy_that_makes_no_sense_is_refused_at_start_up(args: dict[str, Any]) -> None:
    with pytest.raises(Malformed, match="scoringStrategy"):
        BUILT_IN["NodeResourcesFit"](args)


def test_of_many_resources_that_no_node_offers_some_are_named() -> None:
    """As many as a verdict can tell apart; that there are more is said, too."""
    nodes = [a_node("n1", cpu=4), a_node("n2", cpu=4)]
    decision = run(nodes, [a_pod("p", requests={f"e.co/r{i:03}": 1 for i in range(200)})]).decisions["p"]
    counts = dict(decision.diagnosis.counts)
    assert len(counts) == MAX_REASONS
    assert counts.pop("further resources are insufficient") == 2
    assert counts == {f"Insufficient e.co/r{i:03}": 2 for i in range(MAX_REASONS - 1)}


MANY = {f"e.co/r{i}": 1 + i % 3 for i in range(12)}
OFFERS = [
    pytest.param({}, id="nothing of it"),
    pytest.param({f"e.co/r{i}": 2 for i in range(12)}, id="all, and some too little"),
    pytest.param({f"e.co/r{i}": 3 for i in range(0, 12, 2)}, id="every other one"),
    pytest.param({f"e.co/r{i}": 9 for i in range(12)}, id="enough"),
]


@pytest.mark.parametrize("device_class", [False, True], ids=["by device plugins", "some by a device class"])
@pytest.mark.parametrize("offers", OFFERS)
def test_many_resources_one_by_one_are_judged_as_all_at_once(
    offers: dict[str, int], device_class: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = [a_node("n1", cpu=4, resources=offers), a_node("n2", cpu=1), a_node("n3", cpu=4, resources={"e.co/r0": 8})]
    running = [a_pod("q", node="n1", requests={"e.co/r0": 2, "e.co/r2": 1})]
    classes = [a_device_class("c", resource="e.co/r4")] if device_class else []
    said = []
    for together in (0, 100):
        monkeypatch.setattr(fit, "_TOGETHER", together)
        found = run(nodes, [*running, a_pod("p", cpu=2, requests=MANY)], device_classes=classes)
        said.append(found.decisions["p"])
    assert said[0] == said[1]
