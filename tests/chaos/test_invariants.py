"""The checker's laws, on a cluster of a few lines: each can be broken, and each is kept by who does nothing wrong."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.chaos.amounts import asked_by, number
from tests.chaos.invariants import Breach, laws
from tests.chaos.observed_cluster import LEAST, MONSTER, NAME, ObservedCluster, node_seen, pod_seen
from tests.chaos.seed_cluster import SCHEDULER, a_node, a_pod

VERSIONS = iter(range(1, 10**6))
LAWS = laws(deadline=10.0)


def a_cluster(*nodes: tuple[str, int]) -> ObservedCluster:
    cluster = ObservedCluster()
    for name, cpu in nodes:
        cluster.nodes[name] = node_seen(a_node(name, cpu))
    return cluster


def happens(cluster: ObservedCluster, name: str, cpu: str = "1", node: str = "", **more: Any) -> list[Breach]:
    """A pod is seen so; what that breaks."""
    version = next(VERSIONS)
    item = a_pod(name, cpu)
    item["metadata"] |= {
        "namespace": "ns",
        "uid": f"uid-{name}",
        "resourceVersion": str(version),
        **more.pop("meta", {}),
    }
    item["spec"] |= {"nodeName": node, **more.pop("spec", {})}
    item["status"] = more
    uid = item["metadata"]["uid"]
    old = cluster.pods.get(uid)
    new = pod_seen(item, old)
    cluster.put(uid, new)
    return [breach for law in LAWS for breach in law.changed(cluster, old, new, version)]


def laws_at_the_end(cluster: ObservedCluster) -> Iterator[str]:
    return (f"{breach.law}: {breach.text}" for law in LAWS for breach in law.ended(cluster, SCHEDULER))


def refused(reason: str = "Unschedulable") -> dict[str, Any]:
    return {"conditions": [{"type": "PodScheduled", "status": "False", "reason": reason}]}


def test_a_full_node_is_no_breach_and_one_pod_more_is() -> None:
    cluster = a_cluster(("n", 2))
    assert happens(cluster, "a", node="n") == happens(cluster, "b", "1", "n") == []
    (breach,) = happens(cluster, "c", "500m", "n")
    assert breach.law == "overbooked"
    assert breach.text == "node n has 3 pods and too little cpu for them since ns/c"
    assert [pod.key for pod in breach.others] == ["ns/a", "ns/b"]


def test_who_has_ended_takes_no_room() -> None:
    cluster = a_cluster(("n", 1))
    happens(cluster, "a", node="n")
    happens(cluster, "a", node="n", phase="Succeeded")
    assert happens(cluster, "b", node="n") == []


def test_who_is_told_again_is_not_counted_twice() -> None:
    cluster = a_cluster(("n", 1))
    assert happens(cluster, "a", node="n") == happens(cluster, "a", node="n", phase="Running") == []


def test_a_pod_stays_on_its_node() -> None:
    cluster = a_cluster(("n", 4), ("m", 4))
    happens(cluster, "a", node="n")
    assert [breach.text for breach in happens(cluster, "a", node="m")] == ["pod ns/a went from n to m"]


@pytest.mark.parametrize(
    ("pod", "said"),
    [
        pytest.param({"cpu": "1"}, ["lost: pod ns/a waits, and there is room for it on n"], id="forgotten"),
        pytest.param(
            {"cpu": "1", **refused()}, ["lost: pod ns/a waits, and there is room for it on n"], id="an old reason"
        ),
        pytest.param({"cpu": "3"}, ["lost: pod ns/a waits for room, and nothing says why"], id="no reason"),
        pytest.param(
            {"cpu": "3", **refused("SchedulerError")},
            ["lost: pod ns/a waits for room, and it says SchedulerError"],
            id="another reason",
        ),
        pytest.param({"cpu": "3", **refused()}, [], id="too big, and says so"),
        pytest.param({"cpu": "1", "node": "n"}, [], id="bound"),
        pytest.param({"cpu": "1", "spec": {"schedulingGates": [{"name": "g"}]}}, [], id="gated"),
        pytest.param({"cpu": "1", "spec": {"schedulerName": "other"}}, [], id="somebody else's"),
        pytest.param({"cpu": "1", "meta": {"deletionTimestamp": "2026-11-16T00:00:00Z"}}, [], id="leaving"),
    ],
)
def test_who_is_lost(pod: dict[str, Any], said: list[str]) -> None:
    cluster = a_cluster(("n", 2))
    happens(cluster, "a", **pod)
    assert list(laws_at_the_end(cluster)) == said


def test_a_node_that_takes_nobody_is_no_room() -> None:
    cluster, cordoned = a_cluster(), a_node("n", 4)
    cordoned["spec"] = {"unschedulable": True}
    cluster.nodes["n"] = node_seen(cordoned)
    happens(cluster, "a", **refused())
    assert list(laws_at_the_end(cluster)) == []


# --- gangs ----------------------------------------------------------------------------------------------------------


def member(cluster: ObservedCluster, name: str, node: str = "", needs: int = 3, **more: Any) -> list[str]:
    meta = {"labels": {NAME: "llama", LEAST: str(needs)}, **more.pop("meta", {})}
    return [f"{breach.law}: {breach.text}" for breach in happens(cluster, name, node=node, meta=meta, **more)]


def leaves(cluster: ObservedCluster, name: str) -> list[Breach]:
    old = cluster.put(f"uid-{name}", None)
    return [breach for law in LAWS for breach in law.changed(cluster, old, None, next(VERSIONS))]


HALF = "halved: gang ns/llama has 2 members on nodes and needs 3"


def half_of_a_gang() -> ObservedCluster:
    """Two of three are bound, and the third waits."""
    cluster = a_cluster(("n", 4))
    assert member(cluster, "a", "n") == member(cluster, "b", "n") == member(cluster, "c", **refused()) == []
    return cluster


def test_half_of_a_gang_may_be_there_until_its_deadline() -> None:
    cluster = half_of_a_gang()
    cluster.now = 10.0
    assert member(cluster, "c", **refused()) == []
    cluster.now = 10.1
    assert member(cluster, "c", **refused()) == [HALF]
    assert member(cluster, "c", **refused()) == [], "said once"


def test_nobody_has_to_move_for_it_to_be_noticed() -> None:
    cluster = half_of_a_gang()
    cluster.now = 11.0
    assert [breach.text for breach in happens(cluster, "somebody else")] == [HALF.partition(": ")[2]]


def test_half_of_a_gang_is_a_breach_at_the_end() -> None:
    unfinished = "lost: gang ns/llama waits for 1 members, and there is room for 2"
    assert list(laws_at_the_end(half_of_a_gang())) == [unfinished, HALF]


@pytest.mark.parametrize("late", ["c", "d"], ids=["the third follows", "a replacement follows"])
def test_a_gang_that_is_completed_in_time_is_no_breach(late: str) -> None:
    cluster = half_of_a_gang()
    member(cluster, late, "n")
    cluster.now = 99.0
    assert member(cluster, "x", **refused()) == []
    assert not [said for said in laws_at_the_end(cluster) if said.startswith("halved")]


def test_a_gang_that_is_released_in_time_is_no_breach() -> None:
    cluster = half_of_a_gang()
    leaves(cluster, "a")
    leaves(cluster, "b")
    cluster.now = 99.0
    assert member(cluster, "c", **refused()) == []
    assert list(laws_at_the_end(cluster)) == []


def test_a_gang_that_ends_member_by_member_is_no_breach_and_one_that_is_not_refilled_is() -> None:
    cluster = half_of_a_gang()
    member(cluster, "c", "n")
    leaves(cluster, "b")
    cluster.now = 99.0
    assert list(laws_at_the_end(cluster)) == []
    assert member(cluster, "its replacement", **refused()) == []
    cluster.now = 110.0
    assert member(cluster, "its replacement", **refused()) == [HALF]


def test_members_that_run_stay_when_their_gang_was_whole_and_go_when_it_never_was() -> None:
    cluster = a_cluster(("n", 3))
    for name in "ab":
        member(cluster, name, "n", phase="Running")
    member(cluster, "c", cpu="2", **refused())
    assert list(laws_at_the_end(cluster)) == [HALF]
    member(cluster, "c", "n", phase="Running")
    leaves(cluster, "c")
    member(cluster, "its replacement", cpu="2", **refused())
    assert list(laws_at_the_end(cluster)) == []


def test_a_gang_of_which_all_members_are_gone_is_judged_from_its_beginning() -> None:
    cluster = half_of_a_gang()
    member(cluster, "c", "n")
    for name in "abc":
        leaves(cluster, name)
    member(cluster, "d", "n", phase="Running")
    member(cluster, "e", "n", phase="Running")
    member(cluster, "f", cpu="9", **refused())
    assert list(laws_at_the_end(cluster)) == [HALF]


def test_a_member_that_runs_stays_while_no_other_waits_even_if_its_gang_was_gone_for_a_moment() -> None:
    """The replacement of a member is bound in the moment in which all other members are deleted."""
    cluster = half_of_a_gang()
    member(cluster, "c", "n")
    leaves(cluster, "c")
    member(cluster, "its replacement")
    leaves(cluster, "a")
    leaves(cluster, "b")
    member(cluster, "its replacement", "n")
    alone = HALF.replace("2 members", "1 members")
    assert list(laws_at_the_end(cluster)) == [alone], "it has not started"
    member(cluster, "its replacement", "n", phase="Running")
    assert list(laws_at_the_end(cluster)) == []
    member(cluster, "another", cpu="9", **refused())
    assert list(laws_at_the_end(cluster)) == [alone], "somebody waits for it"


@pytest.mark.parametrize(
    ("cpus", "said"),
    [
        pytest.param((2, 1), ["lost: gang ns/llama waits for 3 members, and there is room for 3"], id="room for all"),
        pytest.param((1, 1), [], id="room for two of three"),
        pytest.param((0, 0), [], id="no room"),
    ],
)
def test_a_gang_is_lost_while_there_is_room_for_all_that_it_needs(cpus: tuple[int, int], said: list[str]) -> None:
    cluster = a_cluster(("n", cpus[0]), ("m", cpus[1]))
    for name in "abc":
        member(cluster, name, **refused())
    assert list(laws_at_the_end(cluster)) == said


def test_a_gang_of_which_members_are_missing_or_differ_is_not_counted() -> None:
    cluster = a_cluster(("n", 9))
    member(cluster, "a", **refused())
    member(cluster, "b", **refused())
    assert list(laws_at_the_end(cluster)) == []
    member(cluster, "c", cpu="20", **refused())
    assert list(laws_at_the_end(cluster)) == []


def test_a_monster_may_be_refused_beside_free_room_if_it_says_so() -> None:
    cluster, monster = a_cluster(("n", 4)), {"labels": {MONSTER: "true"}}
    happens(cluster, "a", meta=monster, **refused())
    assert list(laws_at_the_end(cluster)) == []
    happens(cluster, "b", meta=monster)
    assert list(laws_at_the_end(cluster)) == ["lost: pod ns/b waits, and there is room for it on n"]


def test_the_number_may_be_a_pod_groups() -> None:
    cluster = a_cluster(("n", 4))
    cluster.minimums["ns/llama"] = 3
    group = {"schedulingGroup": {"podGroupName": "llama"}}
    for name in "ab":
        happens(cluster, name, node="n", spec=group)
    assert list(laws_at_the_end(cluster)) == [HALF]


def test_a_member_may_wait_for_the_others_and_has_to_say_so() -> None:
    cluster = a_cluster(("n", 4))
    member(cluster, "a", **refused("SchedulingGated"))
    assert list(laws_at_the_end(cluster)) == []
    member(cluster, "b")
    assert list(laws_at_the_end(cluster)) == ["lost: pod ns/b of gang ns/llama waits, and nothing says why"]


# --- amounts --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "thousandths"),
    [("1", 1000), ("250m", 250), ("1Ki", 1024000), ("2e3", 2000000), ("1500u", 2), ("1G", 10**12), ("0.5", 500)],
)
def test_quantities(text: str, thousandths: int) -> None:
    assert number(text) == thousandths


def test_what_a_pod_asks_for() -> None:
    def box(cpu: str, **more: str) -> dict[str, Any]:
        return {"resources": {"requests": {"cpu": cpu}}, **more}

    spec = {
        "containers": [box("1"), box("500m")],
        "initContainers": [box("3"), box("1", restartPolicy="Always"), box("2")],
        "overhead": {"cpu": "250m"},
    }
    assert asked_by({"spec": spec}) == {"cpu": 3250, "pods": 1000}, "the last step beside its sidecar, and the overhead"
    spec["initContainers"] = [box("1", restartPolicy="Always")]
    assert asked_by({"spec": spec}) == {"cpu": 2750, "pods": 1000}


PREEMPTED = [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]


@pytest.mark.parametrize(
    ("waits", "gone_for", "broken"),
    [
        pytest.param({}, None, True, id="nobody waits"),
        pytest.param({"spec": {"priority": 9}}, None, True, id="a pod waits, and for no node"),
        pytest.param({"spec": {"priority": 9}, "nominatedNodeName": "n"}, None, False, id="a pod waits for the node"),
        pytest.param({"nominatedNodeName": "n"}, None, True, id="a pod of no higher priority waits for it"),
        pytest.param({"spec": {"priority": 9}, "nominatedNodeName": "n"}, 5.0, False, id="it was there a moment ago"),
        pytest.param({"spec": {"priority": 9}, "nominatedNodeName": "n"}, 50.0, True, id="it was there long ago"),
    ],
)
def test_no_pod_is_preempted_without_a_preemptor(waits: dict[str, Any], gone_for: float | None, broken: bool) -> None:
    cluster = a_cluster(("n", 1))
    assert happens(cluster, "low", node="n") == []
    if waits:
        happens(cluster, "high", **waits)
    if gone_for is not None:
        old = cluster.put("uid-high", None)
        assert not any(breach for law in LAWS for breach in law.changed(cluster, old, None, next(VERSIONS)))
        cluster.now += gone_for
    found = happens(cluster, "low", node="n", conditions=PREEMPTED)
    assert [breach.law for breach in found] == ["unprovoked"] * broken
    assert happens(cluster, "low", node="n", conditions=PREEMPTED) == [], "said once"
