"""TopologyScoring: whom it spreads, over what, every annotation and alias, and the bug that it must not have."""

from collections import Counter
from typing import Any
from unittest import mock

import pytest

from kubenexus.api.codec import from_data
from kubenexus.api.core import Node, Pod
from kubenexus.api.workloads import Service
from kubenexus.cycle.class_cache import ClassCache
from kubenexus.plugins import shipped_profile
from kubenexus.plugins.topology_scoring.request import spread_request
from kubenexus.state.pod_columns import PodColumns
from kubenexus.state.pods import CONTROLLER
from kubenexus.testing.builders import a_node
from kubenexus.testing.harness import Run, a_ledger, run
from tests.plugins.topology_scoring.spread_cluster import NAME, PLUGINS, own_pod, place, points

ZONES = [place("a1", zone="a"), place("b1", zone="b"), place("c1", zone="c")]


def scored(pod: Pod, nodes: list[Node], *pods: Pod) -> dict[str, int]:
    return points(pod, a_ledger(nodes, pods))


def signed(pod: Pod, nodes: list[Node]) -> bool:
    return NAME in ClassCache(PLUGINS).lookup(pod, a_ledger(nodes).nodes).table.pod.signed


# --- zones ------------------------------------------------------------------------------------------------------------


def test_the_zone_with_the_fewest_own_pods_is_best() -> None:
    running = [own_pod("1", "a1"), own_pod("2", "a1"), own_pod("3", "b1")]
    assert scored(own_pod(), ZONES, *running) == {"a1": 0, "b1": 50, "c1": 100}


def test_ts_1_pods_count_and_not_nodes() -> None:
    """Zone a has ten nodes, zone b has one: without pods no zone is better than the other."""
    nodes = [*(place(f"a{i}", zone="a") for i in range(10)), place("b", zone="b")]
    assert set(scored(own_pod(), nodes).values()) == {50}
    found = scored(own_pod(), nodes, own_pod("1", "b"))
    assert (found["a0"], found["b"]) == (100, 0)


def test_ts_1_a_cluster_with_one_zone_is_neutral_and_costs_nothing() -> None:
    nodes = [place("a1", zone="a", region="r"), place("a2", zone="a", region="r")]
    assert scored(own_pod(), nodes, own_pod("1", "a1")) == {"a1": 50, "a2": 50}
    assert not signed(own_pod(), nodes)
    assert signed(own_pod(), [*nodes, place("b", zone="b")])


def test_a_node_without_a_zone_is_neutral() -> None:
    assert scored(own_pod(), [*ZONES, place("bare")], own_pod("1", "a1"))["bare"] == 50


def test_zones_that_are_full_do_not_flatten_the_rest() -> None:
    """No own pod is in zone c, and none can be: zones a and b are compared with each other."""
    nodes = [*ZONES[:2], a_node("c1", zone="c", cordoned=True)]
    running = [*(own_pod(f"a{i}", "a1") for i in range(9)), *(own_pod(f"b{i}", "b1") for i in range(8))]
    found = scored(own_pod(), nodes, *running)
    assert (found["a1"], found["b1"]) == (0, 100)


@pytest.mark.parametrize("key", ["topology.kubernetes.io/zone", "network.kubenexus.io/az"])
def test_every_label_of_a_zone(key: str) -> None:
    nodes = [place("a", {key: "a"}), place("b", {key: "b"})]
    assert scored(own_pod(), nodes, own_pod("1", "a")) == {"a": 0, "b": 100}


@pytest.mark.parametrize(
    "key", ["network.kubenexus.io/rack-id", "topology.kubernetes.io/rack", "fabric.kubenexus.io/rack"]
)
def test_every_label_of_a_rack(key: str) -> None:
    nodes = [place("a", {key: "a"}), place("b", {key: "b"})]
    assert scored(own_pod(), nodes, own_pod("1", "a")) == {"a": 0, "b": 100}


def test_a_zone_counts_more_than_a_region_and_a_region_more_than_a_rack() -> None:
    nodes = [
        place("zone", region="x", zone="x1", rack="x1a"),
        place("region", region="x", zone="x2", rack="x2a"),
        place("rack", region="y", zone="y1", rack="x1a"),
        place("none", region="y", zone="y2", rack="y2a"),
    ]
    found = scored(own_pod(), nodes, own_pod("1", "zone"))
    assert found["zone"] < found["region"] < found["rack"] < found["none"]
    assert (found["zone"], found["none"]) == (0, 100)


# --- own pods ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("other", "counts"),
    [
        pytest.param(own_pod("1", "a1"), True, id="of the same controller"),
        pytest.param(own_pod("1", "a1", work="batch"), True, id="of the same controller, whatever else differs"),
        pytest.param(own_pod("1", "a1", owner="rs-2"), False, id="of another controller"),
        pytest.param(own_pod("1", "a1", owner="", labels={"app": "web"}), False, id="without a controller"),
        pytest.param(own_pod("1", "a1", terminating=True), False, id="being deleted"),
        pytest.param(own_pod("1", "a1", namespace="other"), False, id="of another namespace"),
    ],
)
def test_pods_of_the_same_controller_count(other: Pod, counts: bool) -> None:
    found = scored(own_pod(labels={"app": "web"}), ZONES, other)
    assert (found["a1"] < found["b1"]) == counts


@pytest.mark.parametrize(
    ("ours", "theirs", "counts"),
    [
        ({"app": "web"}, {"app": "web"}, True),
        ({"app": "web"}, {"app": "api"}, False),
        ({"app.kubernetes.io/name": "web"}, {"app.kubernetes.io/name": "web"}, True),
        (
            {"app.kubernetes.io/name": "web", "app.kubernetes.io/instance": "x"},
            {"app.kubernetes.io/name": "web", "app.kubernetes.io/instance": "y"},
            False,
        ),
        (
            {"app.kubernetes.io/name": "web", "app.kubernetes.io/instance": "x", "app": "a"},
            {"app.kubernetes.io/name": "web", "app.kubernetes.io/instance": "x", "app": "b"},
            True,
        ),
    ],
)
def test_pods_without_a_controller_count_by_their_labels(ours: Any, theirs: Any, counts: bool) -> None:
    found = scored(own_pod(owner="", labels=ours), ZONES, own_pod("1", "a1", owner="", labels=theirs))
    assert (found["a1"] < found["b1"]) == counts


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(own_pod(owner=""), id="no controller and no label"),
        pytest.param(own_pod(kind="DaemonSet"), id="a DaemonSet's"),
        pytest.param(own_pod(work="batch"), id="batch"),
        pytest.param(own_pod(work="training"), id="training"),
        pytest.param(own_pod(notes={"spread-zones": "false"}), id="spread-zones: false"),
        pytest.param(own_pod(notes={"spread-zones": "false", "min-zones": "2"}), id="false, with a number"),
    ],
)
def test_these_pods_are_not_spread(pod: Pod) -> None:
    assert spread_request(pod) is None
    assert scored(pod, ZONES, own_pod("1", "a1")) == {"a1": 50, "b1": 50, "c1": 50}


@pytest.mark.parametrize("work", ["service", "inference", "interactive"])
def test_these_pods_are_spread(work: str) -> None:
    assert scored(own_pod(work=work), ZONES, own_pod("1", "a1"))["a1"] == 0


# --- annotations ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("notes", [{"spread-zones": "true"}, {"min-zones": "2"}])
def test_batch_is_spread_if_it_asks(notes: dict[str, str]) -> None:
    assert scored(own_pod(work="batch", notes=notes), ZONES, own_pod("1", "a1")) == {"a1": 0, "b1": 100, "c1": 100}


def test_batch_that_asks_for_zones_is_not_spread_over_racks() -> None:
    nodes = [place(f"{zone}{i}", zone=zone, rack=f"{zone}{i}") for zone in "ab" for i in range(2)]
    found = scored(own_pod(work="batch", notes={"spread-zones": "true"}), nodes, own_pod("1", "a0"))
    assert found == {"a0": 0, "a1": 0, "b0": 100, "b1": 100}


def test_a_zone_without_own_pods_is_strictly_preferred_until_enough_are_in_use() -> None:
    """Zone c is full of other workloads' pods, and its region of own ones: still it is the third zone."""
    nodes = [place("a", zone="a", region="x"), place("b", zone="b", region="y"), place("c", zone="c", region="x")]
    running = [*(own_pod(f"a{i}", "a") for i in range(9)), own_pod("b", "b")]
    plain, wanted = (scored(own_pod(notes=notes), nodes, *running) for notes in ({}, {"min-zones": "3"}))
    assert plain["b"] > plain["c"], "the region counts against it"
    assert wanted["c"] == 100
    assert max(wanted["a"], wanted["b"]) <= 1
    third = [*running, own_pod("c", "c")]
    assert scored(own_pod(notes={"min-zones": "3"}), nodes, *third) == scored(own_pod(), nodes, *third)


def test_more_zones_than_there_are_change_nothing() -> None:
    running = [own_pod(f"{zone}", f"{zone}1") for zone in "abc"]
    assert set(scored(own_pod(notes={"min-zones": "9"}), ZONES, *running).values()) == {50}


RACKS = [place(f"{rack}{i}", zone=rack[0], rack=rack) for rack in ("a1", "a2", "b1") for i in range(2)]


def test_same_rack_keeps_own_pods_together() -> None:
    running = [own_pod("1", "a10"), own_pod("2", "a11"), own_pod("3", "b10")]
    found = scored(own_pod(notes={"affinity": "same-rack"}), [*RACKS, place("bare")], *running)
    assert found["a10"] == found["a11"] == 100
    assert found["b10"] == found["b11"] == 50
    assert found["a20"] == found["a21"] == found["bare"] == 0


def test_same_rack_within_each_zone_if_zones_are_asked_for() -> None:
    running = [own_pod("1", "a10")]
    found = scored(own_pod(notes={"affinity": "same-rack", "spread-zones": "true"}), RACKS, *running)
    assert found["b10"] > found["a10"] > found["a20"]


@pytest.mark.parametrize("work", ["service", "batch"])
def test_spread_rack_keeps_own_pods_apart(work: str) -> None:
    running = [own_pod("1", "a10")]
    found = scored(own_pod(work=work, notes={"affinity": "spread-rack"}), RACKS, *running)
    assert found["a10"] == found["a11"] == 0
    assert found["b10"] == 100
    assert found["a20"] == (100 if work == "batch" else 50)


@pytest.mark.parametrize(
    "notes", [{"spread-zones": "maybe"}, {"min-zones": "-1"}, {"min-zones": "9" * 300}, {"affinity": "no-rack"}]
)
def test_a_value_that_cannot_be_read_asks_for_nothing(notes: dict[str, str]) -> None:
    assert spread_request(own_pod(notes=notes)) == spread_request(own_pod())
    assert spread_request(own_pod(work="batch", notes=notes)) is None


# --- placements -------------------------------------------------------------------------------------------------------


def scheduled(nodes: list[Node], pods: list[Pod]) -> Run:
    return run(nodes, pods, profile=shipped_profile())


def test_the_pods_of_a_service_alternate_between_zones_of_any_size() -> None:
    nodes = [*(place(f"a{i}", zone="a") for i in range(6)), *(place(f"b{i}", zone="b") for i in range(2))]
    done = scheduled(nodes, [own_pod(f"p{i}") for i in range(8)])
    assert Counter(node[0] for node in done.placements.values()) == {"a": 4, "b": 4}


def test_a_pod_that_is_assumed_counts_and_one_that_ended_does_not() -> None:
    done = scheduled(ZONES[:2], [own_pod("1"), own_pod("2")])
    assert set(done.placements.values()) == {"a1", "b1"}
    gone = "1" if done.placements["1"] == "a1" else "2"
    done.ledger.remove_pod(f"default/{gone}")
    assert points(own_pod("3"), done.ledger) == {"a1": 100, "b1": 0}


def test_it_points_where_pod_topology_spread_does() -> None:
    """Both prefer the emptier zone, so that neither cancels the other."""
    ledger = a_ledger(ZONES, [own_pod(f"{i}", "a1", labels={"app": "web"}) for i in range(3)])
    ledger.upsert_owner(
        from_data({"metadata": {"name": "web", "namespace": "default"}, "spec": {"selector": {"app": "web"}}}, Service)
    )
    table = ClassCache(PLUGINS).lookup(own_pod(labels={"app": "web"}), ledger.nodes).table
    parts = {score.plugin.name: [score.values.points_at(row) for row in range(3)] for score in table.scores}
    assert parts[NAME] == [0, 100, 100]
    assert parts["PodTopologySpread"][0] < min(parts["PodTopologySpread"][1:])


# --- cost -------------------------------------------------------------------------------------------------------------


def test_a_label_that_all_pods_share_is_counted_once_and_then_followed() -> None:
    pods = [own_pod(f"r{i}", f"{'abc'[i % 3]}1", owner="", labels={"app": "web"}) for i in range(9)]
    ledger, cache = a_ledger(ZONES, pods), ClassCache(PLUGINS)
    waiting = own_pod(owner="", labels={"app": "web"})
    with mock.patch.object(PodColumns, "_count", autospec=True, side_effect=PodColumns._count) as counted:
        for i in range(20):
            ledger.upsert_pod(own_pod(f"new{i}", "a1", owner="", labels={"app": "web"}))
            assert points(waiting, ledger, cache) == {"a1": 0, "b1": 100, "c1": 100}
    assert counted.call_count == 1


def test_a_controller_is_no_label_that_a_pod_can_have() -> None:
    """A pod that carries the key by itself still belongs to its own controller."""
    liar = own_pod("1", "a1", owner="rs-2", labels={CONTROLLER: "rs-1"})
    assert set(scored(own_pod(), ZONES, liar).values()) == {50}


def test_the_uid_of_a_controller_is_bounded() -> None:
    pod = own_pod("1", "a1", owner="x" * 1000)
    ledger = a_ledger(ZONES, [pod])
    assert CONTROLLER not in ledger.pods["default/1"].labels
    assert spread_request(pod) is None


def test_a_pod_more_or_less_in_a_zone_of_ten_makes_no_difference() -> None:
    """So that a large workload is not sorted again with each of its pods."""
    pods = [own_pod(f"r{i}", f"{'abc'[i % 3]}1") for i in range(30)]
    ledger, cache = a_ledger(ZONES, pods), ClassCache(PLUGINS)
    assert points(own_pod(), ledger, cache) == {"a1": 50, "b1": 50, "c1": 50}
    ledger.upsert_pod(own_pod("more", "a1"))
    assert points(own_pod(), ledger, cache) == {"a1": 50, "b1": 50, "c1": 50}
    ledger.upsert_pod(own_pod("too many", "a1"))
    assert points(own_pod(), ledger, cache) == {"a1": 0, "b1": 100, "c1": 100}
