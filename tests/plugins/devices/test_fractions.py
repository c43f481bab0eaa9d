"""Parts of GPUs: as many pods on a card as it holds, and never more, whatever comes and goes."""

from collections import Counter
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubenexus.api.core import Node, Pod
from kubenexus.api.devices.device_share import devices_annotation, held_shares
from kubenexus.api.keys import discovered, gpu
from kubenexus.framework.decision import Decision
from kubenexus.framework.job import Job
from kubenexus.plan.decide import Planner, commit
from kubenexus.plugins import profile_plugins, shipped_profile
from kubenexus.state.devices.columns import DRIVER_MEMORY
from kubenexus.state.digest import digest
from kubenexus.state.ledger import Ledger
from kubenexus.testing.builders import a_pod
from kubenexus.testing.harness import Run, a_ledger, run
from tests.state.devices.slices import a_gpu_node

GIB = 1 << 30
PLUGINS = profile_plugins(shipped_profile())
TIME_SLICED = {discovered.REPLICAS.key: "2", discovered.COUNT.key: "2", discovered.PRODUCT.key: "NVIDIA-L40S-SHARED"}


def parts(count: int, fraction: str = "0.5", **more: str) -> list[Pod]:
    return [a_pod(f"part-{i}", annotations={gpu.FRACTION.key: fraction, **more}) for i in range(count)]


def cards_of(done: Run) -> Counter[tuple[str, str]]:
    """How many pods have a part of each card."""
    placed = [placement for decision in done.decisions.values() for placement in decision.placements]
    return Counter((each.node, take.device) for each in placed for take in each.assignment.device_shares)


def bound(pod: Pod, decision: Decision) -> Pod:
    """The pod as the API server shows it after the bind: node and annotations come in one write."""
    placement = next(each for each in decision.placements if each.pod == pod.key)
    texts = dict(placement.assignment.annotations)
    if placement.assignment.device_shares:
        texts[gpu.DEVICES.key] = devices_annotation(placement.assignment.device_shares)
    return msgspec.structs.replace(
        pod,
        metadata=msgspec.structs.replace(pod.metadata, annotations=pod.metadata.annotations | texts),
        spec=msgspec.structs.replace(pod.spec, node_name=placement.node),
    )


def test_two_halves_are_one_card() -> None:
    done = run([a_gpu_node("n", 8, shared=True)], parts(2), profile=shipped_profile())
    assert cards_of(done) == {("n", "gpu-0"): 2}


@pytest.mark.parametrize(
    ("nodes", "cards"),
    [
        pytest.param([a_gpu_node("n", 8, shared=True)], 8, id="on one node with eight cards"),
        pytest.param([a_gpu_node(f"n{i}", 4, shared=True) for i in range(2)], 8, id="on two nodes with four"),
        pytest.param([a_gpu_node(f"n{i}", 1, shared=True) for i in range(8)], 8, id="on eight nodes with one"),
        pytest.param([a_gpu_node("n", 8, shared=True, vram="")], 8, id="on cards whose memory is not known"),
    ],
)
@pytest.mark.parametrize("as_gang", [False, True], ids=["one by one", "as a gang"])
def test_f17_sixteen_halves_are_exactly_two_a_card(nodes: list[Node], cards: int, as_gang: bool) -> None:
    pods = parts(16)
    jobs: list[Any] = [Job("default/gang", tuple(pods), 16)] if as_gang else pods
    done = run(nodes, jobs, profile=shipped_profile())
    assert done.refusals == {}
    assert list(cards_of(done).values()) == [2] * cards
    more = done.then([a_pod("more", annotations={gpu.FRACTION.key: "0.001"})])
    assert more.placements == {}, "nothing is left"


def test_a_whole_card_is_no_card_that_has_a_part() -> None:
    pods = [*parts(1, "0.1"), a_pod("whole", gpu=1), a_pod("too-many", gpu=1)]
    done = run([a_gpu_node("n", 2, shared=True)], pods, profile=shipped_profile())
    assert cards_of(done) == {("n", "gpu-0"): 1, ("n", "gpu-1"): 1}
    assert done.refusals == {"too-many": "0/1 nodes are available: 1 node(s) didn't have enough free devices."}


def test_a_node_that_does_not_share_its_cards_gives_no_part() -> None:
    done = run([a_gpu_node("n", 2)], parts(1), profile=shipped_profile())
    assert done.refusals == {"part-0": "0/1 nodes are available: 1 node(s) didn't share their GPUs."}


def test_parts_of_time_sliced_cards_leave_fewer_replicas() -> None:
    """Two cards are offered twice each. Two parts leave no replica whole, though the kubelet has four to give."""
    node = a_gpu_node("n", 4, vram="", labels=TIME_SLICED)
    done = run([node], [*parts(2, "0.9"), a_pod("unit", gpu=1)], profile=shipped_profile())
    assert list(cards_of(done).values()) == [1, 1]
    assert done.refusals == {"unit": "0/1 nodes are available: 1 node(s) didn't have enough free devices."}
    plain = run([node], [a_pod(f"unit-{i}", gpu=1) for i in range(5)], profile=shipped_profile())
    assert list(cards_of(plain).values()) == [2, 2]
    assert list(plain.refusals) == ["unit-4"]


@pytest.mark.parametrize("as_gang", [False, True], ids=["one by one", "as a gang"])
def test_replicas_that_others_hold_without_names_leave_the_rest(as_gang: bool) -> None:
    """Three of four replicas on two cards are held by pods of another scheduler: one is left, on either card."""
    node = a_gpu_node("n", 4, vram="", labels=TIME_SLICED)
    others = [a_pod(f"other-{i}", gpu=1, node="n") for i in range(3)]
    pods = [a_pod(f"p{i}", gpu=1, annotations={gpu.VRAM_REQUEST.key: "20Gi"}) for i in range(2)]
    jobs: list[Any] = [Job("default/gang", tuple(pods), 1)] if as_gang else pods
    assert list(run([node], [*others, *jobs], profile=shipped_profile()).placements) == ["p0"]


@given(asked=st.lists(st.integers(1, 90), min_size=1, max_size=12), cards=st.integers(1, 3))
def test_f20_memory_that_pods_take_of_a_card_never_exceeds_what_the_driver_leaves(asked: list[int], cards: int) -> None:
    pods = [a_pod(f"p{i}", annotations={gpu.SHARE_MEMORY.key: f"{size}Gi"}) for i, size in enumerate(asked)]
    done = run([a_gpu_node("n", cards, shared=True)], pods, profile=shipped_profile())
    left = {f"gpu-{i}": 80 * GIB - DRIVER_MEMORY for i in range(cards)}
    for pod, size in zip(pods, asked, strict=True):
        decision = done.decisions[pod.metadata.name]
        if not decision.placed:
            assert all(memory < size * GIB for memory in left.values())
            continue
        (take,) = decision.placements[0].assignment.device_shares
        assert take.memory == size * GIB
        left[take.device] -= take.memory
        assert left[take.device] >= 0


def test_f20_a_pod_that_needs_all_of_a_card_leaves_the_drivers_part_out() -> None:
    done = run(
        [a_gpu_node("n", 1, shared=True)],
        [
            a_pod("all", annotations={gpu.SHARE_MEMORY.key: "80Gi"}),
            a_pod("rest", annotations={gpu.SHARE_MEMORY.key: f"{80 * 1024 - (DRIVER_MEMORY >> 20)}Mi"}),
        ],
        profile=shipped_profile(),
    )
    assert done.placements == {"rest": "n"}
    assert "so much memory to share" in done.refusals["all"]


@pytest.mark.parametrize(
    "pods",
    [
        pytest.param(parts(5), id="parts"),
        pytest.param([a_pod(f"p{i}", gpu=i % 3 + 1) for i in range(5)], id="whole cards"),
        pytest.param([a_pod("p", gpu=2, annotations={gpu.FRACTION.key: "0.5"}), *parts(3)], id="parts of two cards"),
    ],
)
def test_f18_the_same_decision_twice_names_the_same_devices(pods: list[Pod]) -> None:
    """A decision that is made again, by the same planner or after a restart, is the same; no second card is taken."""
    nodes = [a_gpu_node(f"n{i}", 8, shared=True) for i in range(3)]
    first, second = (run(nodes, pods, profile=shipped_profile()) for _ in range(2))
    assert first.decisions == second.decisions
    ledger, pod = first.ledger, a_pod("next", annotations={gpu.FRACTION.key: "0.5"})
    before = digest(ledger)
    decisions = [first.planner.decide(Job.of(pod), ledger.snapshot(), 0.0) for _ in range(2)]
    decisions.append(Planner(PLUGINS).decide(Job.of(pod), ledger.snapshot(), 0.0))
    assert decisions[0] == decisions[1] == decisions[2]
    assert digest(ledger) == before, "deciding takes nothing"


def test_f21_a_decision_has_node_and_devices_and_both_are_committed_at_once() -> None:
    ledger, pod = a_ledger([a_gpu_node("n", 2, shared=True)]), parts(1)[0]
    decision = Planner(PLUGINS).decide(Job.of(pod), ledger.snapshot(), 0.0)
    (placement,) = decision.placements
    (record,) = commit(decision, Job.of(pod), ledger, 0.0)
    assert (record.node, record.device_shares) == (placement.node, placement.assignment.device_shares)
    assert dict(placement.assignment.annotations) == {gpu.VISIBLE_DEVICES.key: "0"}
    seen = bound(pod, decision)
    assert (seen.spec.node_name, held_shares(seen)) == (record.node, record.device_shares)
    ledger.upsert_pod(seen)
    assert digest(ledger) == digest(a_ledger([a_gpu_node("n", 2, shared=True)], [seen]))


def test_f21_a_pod_that_is_bound_elsewhere_takes_devices_there_and_none_here() -> None:
    nodes = [a_gpu_node("n", 2, shared=True), a_gpu_node("m", 2, shared=True)]
    ledger, pod = a_ledger(nodes), parts(1)[0]
    decision = Planner(PLUGINS).decide(Job.of(pod), ledger.snapshot(), 0.0)
    commit(decision, Job.of(pod), ledger, 0.0)
    seen = bound(pod, decision)
    other = "m" if seen.spec.node_name == "n" else "n"
    elsewhere = msgspec.structs.replace(seen, spec=msgspec.structs.replace(seen.spec, node_name=other))
    ledger.upsert_pod(elsewhere)
    assert digest(ledger) == digest(a_ledger(nodes, [elsewhere]))


# --- whatever comes and goes ------------------------------------------------------------------------------------------

VARIANTS: dict[str, list[Node | None]] = {
    "n": [a_gpu_node("n", 4, shared=True), a_gpu_node("n", 2, shared=True), None],
    "m": [a_gpu_node("m", 2), a_gpu_node("m", 1), None],
    "s": [a_gpu_node("s", 4, vram="", labels=TIME_SLICED), None],
}
KINDS: list[tuple[int | None, dict[str, str]]] = [
    (1, {}),
    (2, {}),
    (None, {gpu.FRACTION.key: "0.5"}),
    (None, {gpu.FRACTION.key: "0.3"}),
    (None, {gpu.SHARE_MEMORY.key: "30Gi"}),
    (2, {gpu.FRACTION.key: "0.5"}),
    (1, {gpu.VRAM_REQUEST.key: "40Gi"}),
]
OPERATIONS = st.one_of(
    st.tuples(st.just("place"), st.integers(0, len(KINDS) - 1)),
    st.tuples(st.just("place"), st.integers(0, len(KINDS) - 1)),
    st.tuples(st.just("bind"), st.integers(0, 9)),
    st.tuples(st.just("delete"), st.integers(0, 9)),
    st.tuples(
        st.just("change"), st.sampled_from([(name, i) for name, all_ in VARIANTS.items() for i in range(len(all_))])
    ),
    st.tuples(st.just("restart"), st.just(0)),
)


class LiveCluster:
    """What the API server has, the live ledger, and decisions whose binds are under way."""

    def __init__(self) -> None:
        self.nodes = {name: nodes[0] for name, nodes in VARIANTS.items()}
        self.pods: dict[str, Pod] = {}
        self.under_way: dict[str, Pod] = {}
        self.made = 0
        self.restart()

    def place(self, kind: int) -> None:
        number, wishes = KINDS[kind]
        self.made += 1
        pod = a_pod(f"p{self.made}", gpu=number, annotations=wishes)
        decision = self.planner.decide(Job.of(pod), self.ledger.snapshot(), 0.0)
        if decision.placed:
            commit(decision, Job.of(pod), self.ledger, 0.0)
            self.under_way[pod.key] = bound(pod, decision)

    def bind(self, which: int) -> None:
        for key in sorted(self.under_way)[which : which + 1]:
            self.pods[key] = self.under_way.pop(key)
            self.ledger.upsert_pod(self.pods[key])

    def delete(self, which: int) -> None:
        for key in sorted(self.pods)[which : which + 1]:
            del self.pods[key]
            self.ledger.remove_pod(key)

    def change(self, what: tuple[str, int]) -> None:
        name, i = what
        node = self.nodes[name] = VARIANTS[name][i]
        if node is None:
            self.ledger.remove_node(name)
        else:
            self.ledger.upsert_node(node)

    def restart(self, _: int = 0) -> None:
        self.ledger, self.planner, self.under_way = self.rebuilt(), Planner(PLUGINS), {}

    def rebuilt(self) -> Ledger:
        return a_ledger([node for node in self.nodes.values() if node is not None], self.pods.values())

    def check(self) -> None:
        devices = self.ledger.nodes.devices
        for name, row in self.ledger.nodes.row_of.items():
            for slot in range(len(devices.of_row(row).node.devices)):
                assert 0 <= devices.share.item(slot, row) <= 1000, (name, slot)
                assert 0 <= devices.memory.item(slot, row) <= devices.usable.item(slot, row), (name, slot)
            assert self.ledger.audit(self.nodes[name] or a_gpu_node(name)) == []


@settings(max_examples=2 * settings().max_examples)
@given(operations=st.lists(OPERATIONS, max_size=25))
def test_f20_no_card_is_over_its_thousandths_or_its_memory_whatever_comes_and_goes(operations: list[Any]) -> None:
    cluster = LiveCluster()
    for name, about in operations:
        getattr(cluster, name)(about)
        cluster.check()
    while cluster.under_way:
        cluster.bind(0)
    assert digest(cluster.ledger) == digest(cluster.rebuilt())


@pytest.mark.parametrize("number", [40_000, 2**31, 2**63 - 1])
def test_a_pod_that_names_its_node_and_requests_any_number_there_stops_no_other(number: int) -> None:
    nodes = [a_gpu_node("far"), a_gpu_node("near")]
    done = run(nodes, [a_pod("before", gpu=1)], profile=PLUGINS)
    done.ledger.upsert_pod(a_pod("greedy", gpu=number, node="far"))
    after = done.then([a_pod("after", gpu=1), a_pod("more", gpu=2)])
    assert after.placements == {"after": "near", "more": "near"}


@pytest.mark.parametrize("key", [gpu.FRACTION.key, gpu.SHARE_MEMORY.key])
def test_a_part_of_nothing_is_refused(key: str) -> None:
    done = run([a_gpu_node("n", 1, shared=True)], [a_pod("p", annotations={key: "0"})], profile=shipped_profile())
    assert not done.placements
    assert f"annotation {key}" in done.refusals["p"]
