"""What a workload needs is read off what it creates, not off its name or its gates."""

from pathlib import Path
from typing import Any

from kubenexus.sim.apiserver.kinds import Registry
from kubenexus.sim.perf import files, required_features
from kubenexus.sim.perf.template_cache import TemplateCache
from tests.sim.perf.workloads import a_case, a_pod, a_template, asking

NODES = {"opcode": "createNodes", "count": 2}
GROUP = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "metadata": {"name": "g"}}


def needed(folder: Path, *ops: dict[str, Any], **more: Any) -> list[str]:
    (case,) = files.read(a_case(folder, *ops, **more))
    return [each.name for each in required_features.needed(case, case.workloads[0], TemplateCache(Registry()))]


def pods(template: str, count: int = 1, **more: Any) -> dict[str, Any]:
    return {"opcode": "createPods", "count": count, "podTemplatePath": template, **more}


def groups(template: str) -> dict[str, Any]:
    return {"opcode": "createPodGroups", "count": 1, "namespace": "n", "templatePath": template}


def test_plain_pods_need_nothing(tmp_path: Path) -> None:
    template = a_template(tmp_path, "pod.yaml", asking("3"))
    assert needed(tmp_path, NODES, pods(template, 2), featureGates={"DynamicResourceAllocation": True}) == []


def test_pods_that_outrank_others_and_do_not_fit_beside_them_need_preemption(tmp_path: Path) -> None:
    low = a_template(tmp_path, "low.yaml", asking("3", priority=1))
    high = a_template(tmp_path, "high.yaml", asking("3", priority=10))
    assert needed(tmp_path, NODES, pods(low, 2), pods(high)) == ["preemption"]
    assert needed(tmp_path, NODES, pods(low, 1), pods(high)) == []  # they fit
    assert needed(tmp_path, NODES, pods(high, 2), pods(low, 2)) == []  # nobody is outranked
    assert needed(tmp_path, NODES, pods(low, 2), pods(high, skipWaitToCompletion=True)) == []  # nobody waits for them
    waited = {"opcode": "barrier"}
    assert needed(tmp_path, NODES, pods(low, 2), pods(high, skipWaitToCompletion=True), waited) == ["preemption"]


def test_claims_and_device_classes_need_device_claims(tmp_path: Path) -> None:
    claim = {"name": "r", "resourceClaimName": "c"}
    template = a_template(tmp_path, "pod.yaml", a_pod(resourceClaims=[claim]))
    assert needed(tmp_path, NODES, pods(template)) == ["device claims"]
    item = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "d"}, "spec": {}}
    template = a_template(tmp_path, "class.yaml", item)
    assert needed(tmp_path, {"opcode": "createAny", "templatePath": template}) == ["device claims"]


def test_what_is_off_by_default_in_kubernetes_is_not_played(tmp_path: Path) -> None:
    listed = {"name": "d", "attributes": {"models": {"strings": ["a", "b"]}}}
    grouped = {"name": "d", "consumesCounters": [{"counterSet": "s", "compatibilityGroups": ["g"]}]}
    found = [
        needed(
            tmp_path,
            {
                "opcode": "createAny",
                "templatePath": a_template(
                    tmp_path,
                    "slice.yaml",
                    {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "spec": {"devices": [each]}},
                ),
            },
        )
        for each in (listed, grouped)
    ]
    assert found == [
        ["device claims", "attributes that are lists"],
        ["device claims", "compatibility groups of devices"],
    ]


def test_a_gang_is_needed_when_pods_belong_to_one(tmp_path: Path) -> None:
    member = a_template(tmp_path, "pod.yaml", a_pod(schedulingGroup={"podGroupName": "g"}))
    gang = a_template(tmp_path, "gang.yaml", {**GROUP, "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}})
    basic = a_template(tmp_path, "basic.yaml", {**GROUP, "spec": {"schedulingPolicy": {"basic": {}}}})
    near = {"schedulingPolicy": {"gang": {}}, "schedulingConstraints": {"topology": [{"key": "rack"}]}}
    rack = a_template(tmp_path, "rack.yaml", {**GROUP, "spec": near})
    alone = a_template(tmp_path, "alone.yaml", a_pod())
    assert needed(tmp_path, groups(gang), pods(member)) == ["gang scheduling"]
    assert needed(tmp_path, groups(gang), pods(alone)) == []
    assert needed(tmp_path, groups(basic), pods(member)) == []
    assert needed(tmp_path, groups(rack), pods(member)) == ["gang scheduling", "topology-aware gangs"]


def test_a_steady_state_is_not_played(tmp_path: Path) -> None:
    template = a_template(tmp_path, "pod.yaml", a_pod())
    op = pods(template, steadyStateParam="$steady", duration="10s")
    assert needed(tmp_path, op, params={"steady": True}) == ["pods created in a steady state"]
    assert needed(tmp_path, op, params={"steady": False}) == []


def test_preemption_needs_no_plugin_since_the_planner_does_it(tmp_path: Path) -> None:
    low = a_template(tmp_path, "low.yaml", asking("3", priority=1))
    high = a_template(tmp_path, "high.yaml", asking("3", priority=10))
    (case,) = files.read(a_case(tmp_path, NODES, pods(low, 2), pods(high)))
    asked = (case, case.workloads[0], TemplateCache(Registry()))
    assert required_features.missing(*asked, {}) == []
