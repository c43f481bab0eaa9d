"""Bugs of other schedulers that must not be ours. The numbers are those of the failure catalogue."""

from itertools import permutations
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.api.core import Node, Pod, QuantityText
from kubenexus.api.devices.device import Device, NodeDevices
from kubenexus.api.devices.device_share import DeviceShare
from kubenexus.base.arrays import AMOUNT_CAP
from kubenexus.base.errors import Malformed
from kubenexus.framework.decision import Decision
from kubenexus.framework.job import Job
from kubenexus.plan.decide import Planner, commit
from kubenexus.plugins import profile_plugins
from kubenexus.state.digest import digest
from kubenexus.state.ledger import Ledger
from kubenexus.state.snapshot import StaleSnapshot
from kubenexus.testing.builders import a_node, a_pod
from kubenexus.testing.harness import CheckedCluster, ReferenceCluster, a_ledger, on_node, relist, run
from kubenexus.testing.strategies import NODES, PODS, nodes, pods
from tests.properties.test_decide import SIZES

RULES = profile_plugins()
LARGEST = str(2**63 - 1)


def decided(planner: Planner, ledger: Ledger, pod: Pod) -> Decision:
    return msgspec.structs.replace(planner.decide(Job.of(pod), ledger.snapshot(), 0.0), generation=0)


# --- 11: a scheduler that refuses an idle rack until somebody restarts it ---------------------------------------------


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[str, tuple[Any, ...]]]:
    """Rounds of nodes that come, change and go, and pods that are bound, finish and are deleted."""
    told: list[tuple[str, tuple[Any, ...]]] = []
    for _ in range(draw(st.integers(5, 25))):
        name, node = draw(st.sampled_from(PODS)), draw(st.sampled_from(NODES))
        event = draw(
            st.sampled_from(["upsert_node", "upsert_node", "remove_node", "upsert_pod", "upsert_pod", "remove_pod"])
        )
        if event == "upsert_node":
            told.append((event, (draw(nodes(node, SIZES)),)))
        elif event == "upsert_pod":
            told.append((event, (draw(pods(name, node, running=True)),)))
        else:
            told.append((event, (node if event == "remove_node" else f"default/{name}",)))
    return told


@given(history=histories(), incoming=st.lists(pods("incoming"), min_size=1, max_size=3))
def test_f11_a_running_scheduler_decides_as_one_that_was_just_restarted(
    history: list[tuple[str, tuple[Any, ...]]], incoming: list[Pod]
) -> None:
    cluster, planner = CheckedCluster(ReferenceCluster(), Ledger()), Planner(RULES)
    for i, (event, args) in enumerate(history):
        cluster.tell(event, *args)
        decided(planner, cluster.ledger, incoming[i % len(incoming)])
    restarted = cluster.reference.ledger()
    for pod in incoming:
        assert decided(planner, cluster.ledger, pod) == decided(Planner(RULES), restarted, pod)


# --- 24: two decisions in one cycle take the same place ---------------------------------------------------------------


def test_f24_a_replacement_does_not_take_a_node_that_a_gang_took_in_the_same_cycle() -> None:
    gang = Job("default/gang", (a_pod("g0", cpu=1), a_pod("g1", cpu=1)), minimum=2)
    done = run([a_node(f"n{i}", cpu=1) for i in range(3)], [gang, a_pod("replacement", cpu=1), a_pod("late", cpu=1)])
    assert sorted(done.placements.values()) == ["n0", "n1", "n2"]
    assert done.refusals == {"late": "0/3 nodes are available: 3 Insufficient cpu."}


def test_f24_of_two_decisions_on_one_state_only_the_first_is_committed() -> None:
    ledger, planner = a_ledger([a_node("n1", cpu=1)]), Planner(RULES)
    jobs = [Job.of(a_pod(name, cpu=1)) for name in ("a", "b")]
    decisions = [planner.decide(job, ledger.snapshot(), 0.0) for job in jobs]
    commit(decisions[0], jobs[0], ledger, 0.0)
    with pytest.raises(StaleSnapshot):
        commit(decisions[1], jobs[1], ledger, 0.0)
    assert ledger.pods.keys() == {"default/a"}


# --- 25: a pod that is deleted and made again -------------------------------------------------------------------------

OLD, NEW = a_pod("db-0", uid="old", cpu=1, node="n1"), a_pod("db-0", uid="new", cpu=2, node="n2")


@pytest.mark.parametrize("delete", ["seen", "missed"])
@pytest.mark.parametrize("known", ["bound", "assumed"])
def test_f25_a_pod_made_again_under_its_name_counts_once(known: str, delete: str) -> None:
    ledger = a_ledger([a_node("n1"), a_node("n2")], [OLD] if known == "bound" else [])
    if known == "assumed":
        ledger.assume(on_node(OLD, ""), "n1", 0.0)
    if delete == "seen":
        ledger.remove_pod(OLD.key)
    ledger.upsert_pod(NEW)
    assert digest(ledger) == digest(a_ledger([a_node("n1"), a_node("n2")], [NEW]))


def test_f25_a_promise_to_the_old_pod_is_not_kept_for_the_new_one() -> None:
    ledger = a_ledger([a_node("n1")])
    ledger.assume(on_node(OLD, ""), "n1", 0.0)
    ledger.upsert_pod(on_node(NEW, ""))
    assert ledger.pods == {}


# --- 28: numbers that do not fit --------------------------------------------------------------------------------------


@pytest.mark.parametrize("amount", [LARGEST, "8Ei", "9E", "1e30", str(2**64), "5Ei"])
@pytest.mark.parametrize("has", ["32Gi", "1E", str(AMOUNT_CAP - 1), str(AMOUNT_CAP), "4Ei"])
def test_f28_more_than_a_node_has_does_not_fit_however_much_it_is(amount: str, has: str) -> None:
    done = run([a_node("n1", memory=has)], [a_pod("p", memory=amount)])
    assert done.refusals == {"p": "0/1 nodes are available: 1 Insufficient memory."}


@pytest.mark.parametrize("resource", ["cpu", "memory", "example.com/gpu"])
def test_f28_the_sum_of_huge_pods_is_never_less_than_one_of_them(resource: str) -> None:
    """Other schedulers' sums turned negative, and the node looked empty."""
    ledger = a_ledger([a_node("n1", resources={"example.com/gpu": 8})])
    seen = []
    for i in range(5):
        ledger.upsert_pod(a_pod(f"p{i}", node="n1", requests={resource: str(2**62)}))
        seen.append(ledger.nodes.resources.used[ledger.nodes.resources.index[resource], 0])
    assert seen == sorted(seen)
    assert seen[0] >= AMOUNT_CAP
    for i in range(5):
        ledger.remove_pod(f"default/p{i}")
    assert digest(ledger) == digest(a_ledger([a_node("n1", resources={"example.com/gpu": 8})]))


def test_f28_a_huge_pod_on_an_overcommitted_node_is_refused_and_told_what_it_lacks() -> None:
    done = run([a_node("n1", memory="1Gi")], [a_pod("x", node="n1", memory="2Gi"), a_pod("p", memory=LARGEST)])
    nearest = done.decisions["p"].diagnosis.nearest
    assert nearest is not None
    assert [(s.resource, s.lacking >= 2**62 - 1) for s in nearest.shortages] == [("memory", True)]


@pytest.mark.parametrize("amount", ["NaN", "-1", "-5Gi", "inf", "1/0", ""])
def test_f28_what_is_no_amount_is_refused_with_its_field_and_the_rest_goes_on(amount: str) -> None:
    ledger = a_ledger([a_node("n1"), a_node("n2")])
    with pytest.raises(Malformed, match=r"Pod default/odd: spec.containers\[0\].resources.requests\[memory\]"):
        ledger.upsert_pod(a_pod("odd", node="n1", memory=amount))
    planner = Planner(RULES)
    assert not decided(planner, ledger, a_pod("odd too", memory=amount)).placed
    assert [p.node for p in decided(planner, ledger, a_pod("good", memory="1Gi")).placements] == ["n2"]


# --- 31, 39: events that never came -----------------------------------------------------------------------------------


def test_f31_a_pod_whose_delete_was_missed_gives_its_gpus_back_at_the_next_list() -> None:
    nodes_, holder = [a_node("n1", gpu=8)], a_pod("holder", gpu=8)
    ledger = a_ledger(nodes_)
    ledger.set_devices("n1", NodeDevices(tuple(Device(name=f"gpu-{i}") for i in range(8))))
    ledger.assume(holder, "n1", 0.0, takes=tuple(DeviceShare(f"gpu-{i}") for i in range(8)))
    ledger.upsert_pod(on_node(holder, "n1"))
    assert not decided(Planner(RULES), ledger, a_pod("next", gpu=8)).placed
    relist(ledger, nodes_, [])
    assert decided(Planner(RULES), ledger, a_pod("next", gpu=8)).placed
    assert ledger.nodes.devices.share[:8, 0].tolist() == [1000] * 8


def test_f39_a_pod_of_another_scheduler_that_is_first_seen_as_an_update_counts() -> None:
    """There is no separate word for an update: whatever is seen first is an addition."""
    foreign = a_pod("foreign", cpu=3, node="n1", scheduler_name="another", labels={"changed": "since it was added"})
    done = run([a_node("n1", cpu=4)], [foreign, a_pod("ours", cpu=2)])
    assert done.refusals == {"ours": "0/1 nodes are available: 1 Insufficient cpu."}


# --- 65: the order of a map -------------------------------------------------------------------------------------------

OFFERED = {"cpu": 4, "memory": "8Gi", "pods": 9, "example.com/gpu": 2}
ASKED: dict[str, QuantityText] = {"cpu": 1, "memory": "1Gi", "example.com/gpu": 1}


def test_f65_the_order_of_keys_in_an_object_does_not_matter() -> None:
    decisions, digests, classes = set(), set(), set()
    for offered in permutations(OFFERED.items()):
        for asked in list(permutations(ASKED.items()))[::2]:
            marks = dict(sorted({"a": "1", "b": "2"}.items(), reverse=asked[0][0] == "cpu"))
            node, pod = _ordered(dict(offered), marks), a_pod("p", requests=dict(asked), selects=marks, labels=marks)
            done = run([node, a_node("n2", labels=marks)], [pod])
            decisions.add(done.decisions["p"])
            digests.add(digest(done.ledger))
            classes.add(done.planner.class_cache.signer.sign(pod))
    assert (len(decisions), len(digests), len(classes)) == (1, 1, 1)


def _ordered(offered: dict[str, Any], labels: dict[str, str]) -> Node:
    node = a_node("n1", labels=labels)
    return msgspec.structs.replace(node, status=msgspec.structs.replace(node.status, allocatable=offered))
