"""The checker's laws, on a world of a few lines: each can be broken, and each is kept by who does nothing wrong."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.chaos.amounts import asked_by, number
from tests.chaos.laws import LAWS, Breach
from tests.chaos.stage import SCHEDULER, a_node, a_pod
from tests.chaos.world import World, node_seen, pod_seen

VERSIONS = iter(range(1, 10**6))


def a_world(*nodes: tuple[str, int]) -> World:
    world = World()
    for name, cpu in nodes:
        world.nodes[name] = node_seen(a_node(name, cpu))
    return world


def happens(world: World, name: str, cpu: str = "1", node: str = "", **more: Any) -> list[Breach]:
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
    old = world.pods.get(uid)
    new = pod_seen(item, old)
    world.put(uid, new)
    return [breach for law in LAWS for breach in law.changed(world, old, new, version)]


def laws_at_the_end(world: World) -> Iterator[str]:
    return (f"{breach.law}: {breach.text}" for law in LAWS for breach in law.ended(world, SCHEDULER))


def refused(reason: str = "Unschedulable") -> dict[str, Any]:
    return {"conditions": [{"type": "PodScheduled", "status": "False", "reason": reason}]}


def test_a_full_node_is_no_breach_and_one_pod_more_is() -> None:
    world = a_world(("n", 2))
    assert happens(world, "a", node="n") == happens(world, "b", "1", "n") == []
    (breach,) = happens(world, "c", "500m", "n")
    assert breach.law == "overbooked"
    assert breach.text == "node n has 3 pods and too little cpu for them since ns/c"
    assert [pod.key for pod in breach.others] == ["ns/a", "ns/b"]


def test_who_has_ended_takes_no_room() -> None:
    world = a_world(("n", 1))
    happens(world, "a", node="n")
    happens(world, "a", node="n", phase="Succeeded")
    assert happens(world, "b", node="n") == []


def test_who_is_told_again_is_not_counted_twice() -> None:
    world = a_world(("n", 1))
    assert happens(world, "a", node="n") == happens(world, "a", node="n", phase="Running") == []


def test_a_pod_stays_on_its_node() -> None:
    world = a_world(("n", 4), ("m", 4))
    happens(world, "a", node="n")
    assert [breach.text for breach in happens(world, "a", node="m")] == ["pod ns/a went from n to m"]


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
    world = a_world(("n", 2))
    happens(world, "a", **pod)
    assert list(laws_at_the_end(world)) == said


def test_a_node_that_takes_nobody_is_no_room() -> None:
    world, cordoned = a_world(), a_node("n", 4)
    cordoned["spec"] = {"unschedulable": True}
    world.nodes["n"] = node_seen(cordoned)
    happens(world, "a", **refused())
    assert list(laws_at_the_end(world)) == []


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
