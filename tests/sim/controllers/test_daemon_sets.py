"""DaemonSets: one pod a node, tied to it by name."""

from typing import Any

from tests.sim.controllers.towns import APPS, CORE, Json, Town, template, tied

GPU: Json = {"key": "nvidia.com/gpu", "effect": "NoSchedule"}
IMAGE_2 = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "i:2"}]}}}}


def daemons(**spec: Any) -> Town:
    town = Town()
    for name in ("a", "b", "c"):
        town.node(name, zone="west" if name == "a" else "east")
    town.node("gpu", (GPU,))
    town.apply(
        APPS, "daemonsets", "ds", {"selector": {"matchLabels": {"app": "ds"}}, "template": template("ds", **spec)}
    )
    town.settle()
    return town


def places(town: Town) -> list[str]:
    return sorted(tied(pod) for pod in town.pods())


def status(town: Town) -> Json:
    return dict(town.get(APPS, "daemonsets", "ds")["status"])


def test_every_node_it_may_run_on_gets_one() -> None:
    town = daemons()
    assert places(town) == ["a", "b", "c"]
    town.busy()
    said = ("desiredNumberScheduled", "currentNumberScheduled", "numberReady", "numberAvailable", "numberMisscheduled")
    assert [status(town)[field] for field in said] == [3, 3, 3, 3, 0]


def test_it_tolerates_what_daemons_tolerate() -> None:
    town = daemons()
    tolerated = {(each["key"], each["effect"]) for each in town.pods()[0]["spec"]["tolerations"]}
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
    town = daemons()
    town.busy()
    town.node("d")
    town.busy()
    assert places(town) == ["a", "b", "c", "d"]
    taint = {"spec": {"taints": [{"key": "keep", "value": "off", "effect": "NoExecute"}]}}
    town.do("PATCH", f"{CORE}/nodes/a", taint, "application/merge-patch+json")
    town.busy()
    assert places(town) == ["b", "c", "d"]


def test_a_cordoned_node_keeps_its_daemon() -> None:
    town = daemons()
    town.busy()
    taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    body = {"spec": {"unschedulable": True, "taints": [taint]}}
    town.do("PATCH", f"{CORE}/nodes/a", body, "application/merge-patch+json")
    town.busy()
    assert places(town) == ["a", "b", "c"]


def test_an_update_leaves_no_more_than_one_node_without() -> None:
    town = daemons()
    town.busy()
    town.patch(APPS, "daemonsets", "ds", IMAGE_2)
    town.settle()
    assert sum("deletionTimestamp" in pod["metadata"] for pod in town.pods()) == 1
    town.busy()
    assert [pod["spec"]["containers"][0]["image"] for pod in town.pods()] == ["i:2"] * 3
    assert status(town)["updatedNumberScheduled"] == 3


def test_a_pod_that_failed_is_tried_again_after_a_while() -> None:
    town = daemons()
    town.busy()
    [bad] = [pod["metadata"]["name"] for pod in town.pods() if tied(pod) == "b"]
    town.finish(bad, "Failed")
    town.settle()
    assert bad in town.names()
    town.later(1)
    town.busy()
    assert bad not in town.names()
    assert places(town) == ["a", "b", "c"]
