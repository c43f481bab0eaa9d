"""NUMA nodes that a pod has to itself, and how members of a gang share NUMA nodes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.api.core import Pod
from kubenexus.api.numa.machine import Kubelet
from kubenexus.cycle.class_cache import ClassCache
from kubenexus.framework.job import Job
from kubenexus.framework.verdict import NodeVerdict
from kubenexus.plan.decide import Planner
from kubenexus.plugins import profile_plugins, shipped_profile
from kubenexus.plugins.numa.reasons import KEPT
from kubenexus.sim.kubelets.numa_kubelet import NumaKubelet, a_machine
from kubenexus.state.numa.holdings import zones_of
from kubenexus.state.view import Nodes, OneNode
from kubenexus.testing.builders import a_node
from kubenexus.testing.harness import Run, a_ledger
from tests.api.numa.builders import GPU, a_numa_pod, guaranteed

GI = 1 << 30
POLICY, SPREAD = "numa.scheduling.kubenexus.io/policy", "scheduling.kubenexus.io/gang-numa-spread"
NAME, LEAST = "pod-group.scheduling.kubenexus.io/name", "pod-group.scheduling.kubenexus.io/min-available"
PLUGINS = profile_plugins(shipped_profile())


class Cluster:
    """Nodes with kubelets of their own, which admit what is placed."""

    def __init__(self, nodes: int, policy: str = "single-numa-node", gpus: int = 0, cpus: int = 8) -> None:
        kubelet = Kubelet(policy, static_cpus=True, static_memory=True)
        devices = {GPU: gpus} if gpus else {}
        machine = a_machine(2, cpus, 256 * GI, devices, 0)
        self.kubelets = {f"n{number}": NumaKubelet(f"n{number}", kubelet, machine) for number in range(nodes)}
        offers = {GPU: 2 * gpus} if gpus else {}
        self.ledger = a_ledger([a_node(name, cpu=2 * cpus, memory="512Gi", resources=offers) for name in self.kubelets])
        self.report()
        self.run = Run(self.ledger, Planner(PLUGINS), {})
        self.zones: dict[str, tuple[str, int]] = {}  # by pod: its node, and its NUMA nodes at the kubelet
        self.refusals: dict[str, str] = {}

    def report(self) -> None:
        for each in self.kubelets.values():
            self.ledger.upsert_node_topology(each.report())
        self.ledger.read_devices()

    def place(self, *pods: Pod) -> None:
        job = Job.of(pods[0]) if len(pods) == 1 else Job(f"default/gang/{pods[0].metadata.name}", pods, len(pods))
        run = self.run.then([job])
        self.refusals |= run.refusals
        for pod in pods:
            node = run.placements.get(pod.metadata.name)
            if node is not None:
                said = self.kubelets[node].admit(pod)
                assert said.admitted, said.reason
                affinity = said.containers["main"].affinity
                self.zones[pod.metadata.name] = node, (affinity.zones or 0) if affinity else 0

    def remove(self, name: str) -> None:
        node, _ = self.zones.pop(name)
        self.kubelets[node].remove(f"default/{name}")
        self.ledger.remove_pod(f"default/{name}")


def a_sized_pod(name: str, cpu: int = 2, gpus: int = 0, *, policy: str = "", spread: str = "", gang: str = "") -> Pod:
    notes = {key: value for key, value in ((POLICY, policy), (SPREAD, spread)) if value}
    labels = {NAME: gang, LEAST: "4"} if gang else {}
    return a_numa_pod(guaranteed("main", str(cpu), "1Gi", gpus), name=name, annotations=notes, labels=labels)


def test_later_pods_stay_off_the_numa_node_of_an_isolated_pod() -> None:
    cluster = Cluster(1)
    cluster.place(a_sized_pod("alone", policy="isolated"))
    cluster.place(a_sized_pod("later"))
    assert cluster.zones == {"alone": ("n0", 1)}
    assert cluster.refusals["later"].startswith(f"0/1 nodes are available: 1 {KEPT.text}.")
    cluster.report()
    cluster.place(a_sized_pod("still"))
    assert "still" in cluster.refusals
    cluster.remove("alone")
    cluster.place(a_sized_pod("last"))
    assert cluster.zones == {"last": ("n0", 1)}


def test_where_the_kubelet_takes_another_numa_node_they_may_run() -> None:
    cluster = Cluster(1)
    cluster.place(a_sized_pod("alone", 8, policy="isolated"))
    cluster.place(a_sized_pod("later"))
    assert cluster.zones == {"alone": ("n0", 1), "later": ("n0", 2)}


def test_an_isolated_pod_does_not_go_where_the_kubelet_would_put_it_beside_another() -> None:
    cluster = Cluster(1)
    cluster.place(a_sized_pod("first", 1))
    cluster.place(a_sized_pod("alone", 2, policy="isolated"))
    assert "alone" in cluster.refusals  # the first NUMA node has room for it
    cluster.place(a_sized_pod("large", 8, policy="isolated"))
    assert cluster.zones["large"] == ("n0", 2)


@given(st.lists(st.tuples(st.integers(1, 8), st.sampled_from(["", "isolated", "single-numa-node"])), max_size=12))
def test_no_isolated_pod_shares_a_numa_node_and_a_single_row_has_the_same_answer(sizes: list[tuple[int, str]]) -> None:
    cluster = Cluster(3)
    for number, (cpu, policy) in enumerate(sizes):
        cluster.place(a_sized_pod(f"p{number}", cpu, policy=policy))
        if number % 4 == 3:
            cluster.report()
    alone = {f"p{number}" for number, (_, policy) in enumerate(sizes) if policy == "isolated"} & cluster.zones.keys()
    for name in alone:
        assert [other for other, at in cluster.zones.items() if at == cluster.zones[name]] == [name]
    columns = cluster.ledger.nodes
    plugin = next(each for each in PLUGINS.filters if each.name == "NUMATopology")
    for policy in ("", "isolated"):
        pod = ClassCache(PLUGINS).lookup(a_sized_pod("q", 2, policy=policy), columns).table.pod
        everything = NodeVerdict()
        plugin.filter(pod, Nodes(columns), everything)
        for row in range(columns.size):
            one = NodeVerdict()
            plugin.filter(pod, OneNode(columns, row), one)
            bits = everything.bits if isinstance(everything.bits, int) else int(everything.bits[row])
            assert {each.text for each in one.table.read(one.row_bits)} == {
                each.text for each in everything.table.read(bits)
            }


@pytest.mark.parametrize(
    ("spread", "nodes", "shares"),
    [
        pytest.param("packed", 4, [4], id="packed: all on the first NUMA node of one machine"),
        pytest.param("", 4, [4], id="without a word: packed"),
        pytest.param("isolated", 4, [1, 1, 1, 1], id="isolated: each on a NUMA node of its own"),
        pytest.param("isolated", 3, [], id="isolated: three machines are too few"),
        pytest.param("balanced", 4, [1, 1, 1, 1], id="balanced: evenly over four machines"),
        pytest.param("balanced", 2, [2, 2], id="balanced: evenly over two machines"),
        pytest.param("balanced", 1, [4], id="balanced: a wish, if there is one machine"),
    ],
)
def test_how_members_of_a_gang_share_numa_nodes(spread: str, nodes: int, shares: list[int]) -> None:
    cluster = Cluster(nodes)
    cluster.place(*(a_sized_pod(f"m{number}", 2, spread=spread, gang="g") for number in range(4)))
    places = list(cluster.zones.values())
    assert sorted(places.count(place) for place in set(places)) == shares


def test_members_that_fill_a_numa_node_each_may_share_a_machine() -> None:
    cluster = Cluster(2)
    cluster.place(*(a_sized_pod(f"m{number}", 5, spread="isolated", gang="g") for number in range(4)))
    assert sorted(cluster.zones.values()) == [("n0", 1), ("n0", 2), ("n1", 1), ("n1", 2)]


def test_another_gang_may_share_numa_nodes_with_members_that_keep_off_each_other() -> None:
    cluster = Cluster(4)
    for gang in ("g", "h"):
        cluster.place(*(a_sized_pod(f"{gang}{number}", 2, spread="isolated", gang=gang) for number in range(4)))
    assert len(cluster.zones) == 8
    assert set(cluster.zones.values()) == {(f"n{number}", 1) for number in range(4)}


@pytest.mark.parametrize("spread", ["packed", "balanced", "isolated"])
def test_a_gang_stays_off_the_numa_node_of_an_isolated_pod(spread: str) -> None:
    cluster = Cluster(5)
    cluster.place(a_sized_pod("alone", policy="isolated"))
    cluster.place(*(a_sized_pod(f"m{number}", 2, spread=spread, gang="g") for number in range(4)))
    assert len(cluster.zones) == 5
    assert list(cluster.zones.values()).count(cluster.zones["alone"]) == 1


def test_a_gang_does_not_reach_a_numa_node_that_is_kept_after_others_are_full() -> None:
    """The isolated pod has the second NUMA node; the first has room for two members."""
    cluster = Cluster(1)
    cluster.place(a_sized_pod("first", 4))
    cluster.place(a_sized_pod("alone", 5, policy="isolated"))
    assert cluster.zones["alone"] == ("n0", 2)
    cluster.place(*(a_sized_pod(f"m{number}", 2, gang="g") for number in range(3)))
    assert cluster.zones.keys() == {"first", "alone"}
    cluster.place(*(a_sized_pod(f"n{number}", 2, gang="h") for number in range(2)))
    assert cluster.zones["n0"] == cluster.zones["n1"] == ("n0", 1)


def test_a_gang_of_64_with_eight_cores_and_a_gpu_each_is_admitted_by_every_kubelet() -> None:
    cluster = Cluster(12, gpus=4, cpus=40)
    for number in range(12):  # some NUMA nodes have fewer GPUs or cores
        cluster.place(a_sized_pod(f"before{number}", 10 + number, number % 2))
    members = [a_sized_pod(f"m{number}", 8, 1, policy="single-numa-node") for number in range(64)]
    cluster.place(*members)
    placed = [zones for name, (_, zones) in cluster.zones.items() if name.startswith("m")]
    assert len(placed) == 64
    assert set(placed) <= {1, 2}


def test_what_pods_hold_names_their_numa_nodes() -> None:
    cluster = Cluster(1, gpus=1)
    cluster.place(a_sized_pod("p", 2, 1))
    here = cluster.ledger.nodes.numa.of_row(0)
    assert here is not None
    (held,) = here.holdings.values()
    assert zones_of(here.reported.machine, held) == 1
