"""DaemonSets: one pod a node, tied to it by name."""

from typing import Any

from tests.sim.controllers.controller_fixture import APPS, CORE, ControllerFixture, Json, template, tied

GPU: Json = {"key": "nvidia.com/gpu", "effect": "NoSchedule"}
IMAGE_2 = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "i:2"}]}}}}


def daemons(**spec: Any) -> ControllerFixture:
    fixture = ControllerFixture()
    for name in ("a", "b", "c"):
        fixture.node(name, zone="west" if name == "a" else "east")
    fixture.node("gpu", (GPU,))
    fixture.apply(
        APPS, "daemonsets", "ds", {"selector": {"matchLabels": {"app": "ds"}}, "template": template("ds", **spec)}
    )
    fixture.settle()
    return fixture


def places(fixture: ControllerFixture) -> list[str]:
    return sorted(tied(pod) for pod in fixture.pods())


def status(fixture: ControllerFixture) -> Json:
    return dict(fixture.get(APPS, "daemonsets", "ds")["status"])


def test_every_node_it_may_run_on_gets_one() -> None:
    fixture = daemons()
    assert places(fixture) == ["a", "b", "c"]
    fixture.busy()
    said = ("desiredNumberScheduled", "currentNumberScheduled", "numberReady", "numberAvailable", "numberMisscheduled")
    assert [status(fixture)[field] for field in said] == [3, 3, 3, 3, 0]


def test_it_tolerates_what_daemons_tolerate() -> None:
    fixture = daemons()
    tolerated = {(each["key"], each["effect"]) for each in fixture.pods()[0]["spec"]["tolerations"]}
    assert {
        ("node.kubernetes.io/not-ready", "NoExecute"),
        ("node.kubernetes.io/unreachable", "NoExecute"),
        ("node.kubernetes.io/disk-pressure", "NoSchedule"),
        ("node.kubernetes.io/memory-pressure", "NoSchedule"),
        ("node.kubernetes.io/pid-pressure", "NoSchedule"),
        ("node.kubernetes.io/unschedulable", "NoSchedule"),
    } <= tolerated


def test_a_toleration_opens_a_tainted_node() -> None:
    assert places(daemons(tolerations=[{"operator": "Exists"}])) == ["a", "b", "c", "gpu"]


def test_a_selector_and_an_affinity_choose() -> None:
    assert places(daemons(nodeSelector={"zone": "east"})) == ["b", "c"]
    term = {"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["east"]}]}
    wish = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    assert places(daemons(affinity=wish)) == ["a"]


def test_a_node_comes_and_a_node_goes_out_of_bounds() -> None:
    fixture = daemons()
    fixture.busy()
    fixture.node("d")
    fixture.busy()
    assert places(fixture) == ["a", "b", "c", "d"]
    taint = {"spec": {"taints": [{"key": "keep", "value": "off", "effect": "NoExecute"}]}}
    fixture.do("PATCH", f"{CORE}/nodes/a", taint, "application/merge-patch+json")
    fixture.busy()
    assert places(fixture) == ["b", "c", "d"]


def test_a_cordoned_node_keeps_its_daemon() -> None:
    fixture = daemons()
    fixture.busy()
    taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    body = {"spec": {"unschedulable": True, "taints": [taint]}}
    fixture.do("PATCH", f"{CORE}/nodes/a", body, "application/merge-patch+json")
    fixture.busy()
    assert places(fixture) == ["a", "b", "c"]


def test_an_update_leaves_no_more_than_one_node_without() -> None:
    fixture = daemons()
    fixture.busy()
    fixture.patch(APPS, "daemonsets", "ds", IMAGE_2)
    fixture.settle()
    assert sum("deletionTimestamp" in pod["metadata"] for pod in fixture.pods()) == 1
    fixture.busy()
    assert [pod["spec"]["containers"][0]["image"] for pod in fixture.pods()] == ["i:2"] * 3
    assert status(fixture)["updatedNumberScheduled"] == 3


def test_a_pod_that_failed_is_tried_again_after_a_while() -> None:
    fixture = daemons()
    fixture.busy()
    [bad] = [pod["metadata"]["name"] for pod in fixture.pods() if tied(pod) == "b"]
    fixture.finish(bad, "Failed")
    fixture.settle()
    assert bad in fixture.names()
    fixture.later(1)
    fixture.busy()
    assert bad not in fixture.names()
    assert places(fixture) == ["a", "b", "c"]
