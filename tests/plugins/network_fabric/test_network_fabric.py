"""NetworkFabricScore: whom it concerns, every key and alias, its filter and hints, and the bugs it must not have."""

from typing import Any

import pytest

from kubenexus.api.core import Node, Pod, TopologySpreadConstraint
from kubenexus.api.devices.device import Device, Link, NodeDevices
from kubenexus.api.gangs.declaration import TopologyRequest
from kubenexus.api.gangs.topology_request import topology_request_of
from kubenexus.api.keys import gang, network
from kubenexus.api.keys.entry import KeyKind
from kubenexus.api.selectors import LabelSelector
from kubenexus.cycle.class_cache import ClassCache
from kubenexus.framework.cluster_events import ActionType, ClusterEvent, EventResource, events_to_register
from kubenexus.framework.job import Job, JobView
from kubenexus.framework.verdict import Code
from kubenexus.plan.decide import Planner
from kubenexus.plugins import shipped_profile
from kubenexus.plugins.network_fabric.plugin import NO_FABRIC, NetworkFabricScore
from kubenexus.plugins.network_fabric.request import fabric_request
from kubenexus.testing.builders import GPU, HOSTNAME, ZONE, a_node, a_pod
from kubenexus.testing.harness import a_ledger, run
from tests.plugins.network_fabric.fabric_cluster import NAME, PLUGINS, REFUSED, place, score, scores, worker

FABRICS = ("nvswitch", "nvlink", "infiniband", "roce", "ethernet")


# --- whom it concerns -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pod", "concerned"),
    [
        pytest.param(a_pod(cpu=1), False, id="a plain service"),
        pytest.param(a_pod(cpu=1, annotations={"a": "b"}, labels={"app": "web"}), False, id="other keys"),
        pytest.param(a_pod(gpu=1), True, id="a GPU"),
        pytest.param(worker(gpu=0, of="g"), True, id="NET-1: a gang by labels"),
        pytest.param(worker(gpu=0, notes={"network-sensitive": "true"}), True, id="a sensitive pod"),
        pytest.param(worker(gpu=0, notes={"min-fabric-tier": "roce"}), True, id="a pod with a least fabric"),
        pytest.param(
            a_pod(annotations={"pod-group.scheduling.sigs.k8s.io/name": "g"}), False, id="a name without a minimum"
        ),
    ],
)
def test_it_concerns_pods_with_gpus_gangs_and_those_that_ask(pod: Pod, concerned: bool) -> None:
    assert (fabric_request(pod) is not None) == concerned
    nodes = [place("n1", fabric="nvswitch"), place("n2", fabric="ethernet")]
    found = scores(pod, nodes)
    assert (found != {"n1": 50, "n2": 50}) == concerned


def test_a_cluster_without_labels_costs_no_column() -> None:
    columns = a_ledger([a_node("n1"), a_node("n2")]).nodes
    table = ClassCache(PLUGINS).lookup(worker(), columns).table
    (column,) = [each for each in table.scores if each.plugin.name == NAME]
    assert column.uniform is not None
    assert column.at(0) == 50


# --- keys -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "value", "same"),
    [
        *((each.key, word, word) for each in network.FABRIC_TYPE.spellings for word in FABRICS),
        ("network.kubenexus.io/fabric-type", "IB", "infiniband"),
        ("network.kubenexus.io/fabric", "rdma", "roce"),
        ("fabric.kubenexus.io/type", "Eth", "ethernet"),
        ("network.kubenexus.io/fabric-type", "carrier-pigeon", ""),
        ("network.kubenexus.io/fabric-type", "", ""),
    ],
)
def test_every_spelling_of_a_fabric(key: str, value: str, same: str) -> None:
    plain = place("n", fabric=same) if same else place("n")
    assert score(worker(), place("n", {key: value})) == score(worker(), plain)


def test_an_alias_counts_where_the_canonical_key_cannot_be_read() -> None:
    node = place("n", {"fabric.kubenexus.io/type": "nvlink"}, fabric="pigeon")
    assert score(worker(), node) == score(worker(), place("n", fabric="nvlink"))


LEVELS = {
    "nvidia.com/gpu.clique": 100,
    "topology.kubernetes.io/switch": 75,
    "network.kubenexus.io/fabric-id": 75,
    "fabric.kubenexus.io/domain": 75,
    "network.kubenexus.io/rack-id": 50,
    "topology.kubernetes.io/rack": 50,
    "fabric.kubenexus.io/rack": 50,
    "topology.kubernetes.io/zone": 25,
    "network.kubenexus.io/az": 25,
}


@pytest.mark.parametrize(("key", "points"), LEVELS.items())
def test_every_label_of_closeness(key: str, points: int) -> None:
    """Half of the score is that of an unknown fabric, 50."""
    assert score(worker(of="g"), place("n", {key: "x"}), place("m", {key: "x"})) == (50 + points) // 2
    assert score(worker(of="g"), place("n", {key: "y"}), place("m", {key: "x"})) == 25


def test_the_table_above_has_all_labels_of_the_registry() -> None:
    entries = (network.SWITCH, network.FABRIC_ID, network.RACK, network.ZONE)
    labels = {each.key for entry in entries for each in entry.spellings if KeyKind.LABEL in each.kind}
    assert labels | {"nvidia.com/gpu.clique"} == LEVELS.keys()


@pytest.mark.parametrize(("rate", "more"), [("200Gbps", 1), ("400Gbps", 1), ("50GB/s", 1), ("100Gbps", 0), ("much", 0)])
def test_a_fast_link_breaks_ties(rate: str, more: int) -> None:
    plain = score(worker(), place("n", fabric="roce"))
    assert isinstance(plain, int)
    assert score(worker(), place("n", fabric="roce", rate=rate)) == plain + more


@pytest.mark.parametrize("kind", ["training", "batch", "inference", "service", "interactive"])
@pytest.mark.parametrize("sensitive", ["true", "false"])
def test_a_fast_link_outweighs_no_better_fabric(kind: str, sensitive: str) -> None:
    pod = worker(kind=kind, notes={"network-sensitive": sensitive})
    slow = {fabric: score(pod, place("n", fabric=fabric)) for fabric in FABRICS}
    fast = {fabric: score(pod, place("n", fabric=fabric, rate="400Gbps")) for fabric in FABRICS}
    for one in FABRICS:
        for other in FABRICS:
            if slow[one] > slow[other]:  # type: ignore[operator]
                assert slow[one] > fast[other]  # type: ignore[operator]


# --- the least fabric -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("least", [*FABRICS, "ib", "RDMA", "eth"])
@pytest.mark.parametrize("gpu", [0, 1])
def test_net_3_a_least_fabric_is_a_filter_for_every_pod(least: str, gpu: int) -> None:
    pod = worker(kind="service", gpu=gpu, notes={"min-fabric-tier": least})
    found = scores(pod, [*(place(each, fabric=each) for each in FABRICS), place("unknown")])
    word = {"ib": "infiniband", "rdma": "roce", "eth": "ethernet"}.get(least.lower(), least)
    accepted = [name for name, said in found.items() if said != REFUSED]
    assert accepted == list(FABRICS[: FABRICS.index(word) + 1])


def test_a_refused_pod_names_the_fabric_and_no_preemption_helps() -> None:
    pod = worker(gpu=0, notes={"min-fabric-tier": "roce"})
    (decision,) = run([place("n", fabric="ethernet")], [pod], profile=shipped_profile()).decisions.values()
    assert NO_FABRIC.text in decision.sentence()
    assert NO_FABRIC.code is Code.UNRESOLVABLE
    assert decision.diagnosis.refused_by == (NAME,)


def test_a_least_fabric_that_cannot_be_read_refuses_the_pod() -> None:
    done = run([place("n", fabric="nvswitch")], [worker(notes={"min-fabric-tier": "fast"})], profile=shipped_profile())
    assert "min-fabric-tier" in done.refusals["w"]
    assert "must be one of" in done.refusals["w"]


@pytest.mark.parametrize(
    ("old", "new", "helps"),
    [
        pytest.param(None, place("n", fabric="nvlink"), True, id="a node that comes with the fabric"),
        pytest.param(None, place("n", fabric="roce"), False, id="a node that comes without"),
        pytest.param(place("n"), place("n", fabric="ib"), True, id="a node that gets the label"),
        pytest.param(place("n", fabric="ib"), place("n", fabric="nvlink"), False, id="a node that had it before"),
        pytest.param(place("n", fabric="ib"), place("n"), False, id="a node that loses it"),
    ],
)
def test_a_node_wakes_a_refused_pod_if_it_has_the_fabric_now(old: Node | None, new: Node, helps: bool) -> None:
    (of_node, _) = events_to_register([NetworkFabricScore({})])[NAME]
    action = ActionType.ADD if old is None else ActionType.UPDATE_NODE_LABEL
    event = ClusterEvent(EventResource.NODE, action, old, new)
    assert of_node.matches(event)
    assert of_node.hint is not None
    assert of_node.hint(worker(notes={"min-fabric-tier": "infiniband"}), event) is helps


# --- the bugs ---------------------------------------------------------------------------------------------------------

NEAR = {
    "node": {},
    "clique": {"clique": "c", "id": "f", "tor": "t", "rack": "r", "zone": "z"},
    "fabric": {"clique": "d", "id": "f", "tor": "t", "rack": "r", "zone": "z"},
    "rack": {"clique": "d", "id": "g", "tor": "u", "rack": "r", "zone": "z"},
    "zone": {"clique": "d", "id": "g", "tor": "u", "rack": "s", "zone": "z"},
    "elsewhere": {"clique": "d", "id": "g", "tor": "u", "rack": "s", "zone": "y"},
}


@pytest.mark.parametrize("fabric", [*FABRICS, ""])
@pytest.mark.parametrize("sensitive", ["true", "false"])
@pytest.mark.parametrize("kind", ["training", "inference", "interactive"])
def test_net_4_and_net_5_closer_is_strictly_better_on_every_fabric(fabric: str, sensitive: str, kind: str) -> None:
    said: dict[str, str] = {"fabric": fabric} if fabric else {}
    nodes = [place(name, said | labels) for name, labels in NEAR.items() if labels]
    member = place("member", said | NEAR["clique"])
    found = scores(worker(kind=kind, of="g", notes={"network-sensitive": sensitive}), [*nodes, member], ["member"])
    assert found["member"] == found["clique"]
    assert found["clique"] > found["fabric"] > found["rack"] > found["zone"] > found["elsewhere"]  # type: ignore[operator]
    assert all(0 <= each <= 100 for each in found.values())  # type: ignore[operator]


def test_net_5_a_sensitive_pod_prefers_a_near_node_to_a_better_fabric() -> None:
    near, better = place("near", fabric="ethernet", id="f"), place("better", fabric="nvswitch", id="g")
    member = place("m", fabric="ethernet", id="f")
    plain = scores(worker(of="g"), [near, better, member], ["m"])
    sensitive = scores(worker(of="g", notes={"network-sensitive": "true"}), [near, better, member], ["m"])
    assert plain["near"] < plain["better"]  # type: ignore[operator]
    assert sensitive["near"] > sensitive["better"]  # type: ignore[operator]


def test_net_6_ids_that_a_driver_numbers_on_each_node_are_not_compared() -> None:
    """Both nodes have an island 0, and one has the label of a clique."""
    ledger = a_ledger([place("m"), place("n"), place("o", clique="c")])
    cards = tuple(Device(name=f"gpu-{i}", resource=GPU, island=0, link=Link.NVLINK) for i in range(8))
    for name in ("m", "n", "o"):
        ledger.set_devices(name, NodeDevices(cards))
    row_of = ledger.nodes.row_of
    table = ClassCache(PLUGINS).lookup(worker(of="g"), ledger.nodes, JobView(2, (row_of["m"],))).table
    (column,) = [each for each in table.scores if each.plugin.name == NAME]
    assert column.at(row_of["n"]) == column.at(row_of["o"]) < column.at(row_of["m"])


def test_net_7_the_first_member_goes_where_all_fit() -> None:
    """The NVSwitch clique has room for one, the InfiniBand clique for both."""
    nodes = [
        place("best", gpu=1, fabric="nvswitch", clique="small"),
        place("also", gpu=2, fabric="infiniband", clique="c"),
    ]
    job = Job(
        "default/gang/g", tuple(worker(f"w{i}", of="g") for i in range(2)), 2, TopologyRequest("clique", "", True)
    )
    assert set(run(nodes, [job], profile=shipped_profile()).placements.values()) == {"also"}


@pytest.mark.parametrize("level", ["clique", "id", "tor", "rack", "zone"])
def test_net_8_a_node_without_the_label_is_not_close(level: str) -> None:
    member, labelled, bare = place("m", {level: "x"}), place("n", {level: "x"}), place("o")
    found = scores(worker(of="g"), [member, labelled, bare], ["m"])
    assert found["n"] > found["o"] == 25  # type: ignore[operator]


def test_net_8_co_locate_none_turns_closeness_off() -> None:
    member, near, far = (place(name, rack=rack) for name, rack in (("m", "r"), ("n", "r"), ("f", "s")))
    found = scores(worker(of="g", notes={"co-locate": "none"}), [member, near, far], ["m"])
    assert set(found.values()) == {50}


@pytest.mark.parametrize(("room", "together"), [(2, True), (1, False)])
def test_net_8_co_locate_preferred_is_one_clique_where_that_holds_all(room: int, together: bool) -> None:
    nodes = [place(f"n{i}", gpu=room, clique="c" if i < 1 else f"d{i}") for i in range(3)]
    pods = tuple(worker(f"w{i}", of="g", notes={"co-locate": "preferred"}) for i in range(2))
    job = Job("default/gang/g", pods, 2, topology_request_of(pods[0]))
    assert job.topology == TopologyRequest("", "clique", True)
    found = run(nodes, [job], profile=shipped_profile()).placements
    assert len(found) == 2
    assert (len(set(found.values())) == 1) == together


# --- members that have a node -----------------------------------------------------------------------------------------


def rack_nodes() -> list[Node]:
    return [place(f"n{i}", rack=f"r{i // 2}", fabric="infiniband", gpu=1) for i in range(8)]


def test_net_2_the_last_member_joins_those_that_run() -> None:
    """The other member of the gang is bound, and this one is decided for alone."""
    ledger = a_ledger(rack_nodes(), [a_pod("running", gpu=1, node="n6")])
    job = Job("default/gang/g", (worker(of="g"),), 1, bound_nodes=("n6",))
    decision = Planner(PLUGINS).decide(job, ledger.snapshot(), 0.0)
    assert [each.node for each in decision.placements] == ["n7"]


@pytest.mark.parametrize("seed", range(4))
def test_net_2_a_member_that_is_searched_for_sees_those_placed_before_it(seed: int) -> None:
    """Two constraints between members make the planner place them one after the other."""
    apart: dict[str, Any] = {
        "labels": {"app": "x", gang.NAME.key: "g", gang.MIN_AVAILABLE.key: "2"},
        "apart": [f"app=x per {HOSTNAME}"],
        "topology_spread_constraints": [
            TopologySpreadConstraint(
                max_skew=2,
                topology_key=ZONE,
                when_unsatisfiable="DoNotSchedule",
                label_selector=LabelSelector(match_labels={"app": "x"}),
            )
        ],
    }
    nodes = [place(f"n{seed}{i}", rack=f"r{i % 8}", zone="z", gpu=1) for i in range(16)]
    pods = tuple(a_pod(f"w{seed}{i}", gpu=1, **apart) for i in range(2))
    found = run(nodes, [Job("default/gang/g", pods, 2)], profile=shipped_profile()).placements
    racks = {int(node[2:]) % 8 for node in found.values()}
    assert (len(found), len(racks)) == (2, 1)


def test_of_two_cliques_of_equal_room_the_one_on_the_better_fabric_is_chosen() -> None:
    nodes = [
        place(f"{fabric}-{i}", fabric=fabric, clique=clique, gpu=2)
        for fabric, clique in (("ethernet", "a"), ("nvswitch", "b"), ("roce", "c"))
        for i in range(2)
    ]
    pods = tuple(worker(f"w{i}", of="g") for i in range(4))
    job = Job("default/gang/g", pods, 4, TopologyRequest("clique", "", True))
    found = run(nodes, [job], profile=shipped_profile()).placements
    assert {node.partition("-")[0] for node in found.values()} == {"nvswitch"}
