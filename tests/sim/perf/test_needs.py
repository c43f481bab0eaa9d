"""What a workload needs is read off what it creates, not off its name or its gates."""

from pathlib import Path
from typing import Any

from kubenexus.plugins import BUILT_IN
from kubenexus.sim.apiserver.kinds import Registry
from kubenexus.sim.perf import files, needs
from kubenexus.sim.perf.shelf import Shelf
from tests.sim.perf.workloads import a_case, a_pod, a_template, asking

NODES = {"opcode": "createNodes", "count": 2}
# A scheduler that has none of these features, whatever this one has by now.
NOTHING = {name: each for name, each in BUILT_IN.items() if name not in {"DefaultPreemption", "DynamicResources"}}
GROUP = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "metadata": {"name": "g"}}


def lacking(folder: Path, *ops: dict[str, Any], **more: Any) -> list[str]:
    (case,) = files.read(a_case(folder, *ops, **more))
    return needs.missing(case, case.workloads[0], Shelf(Registry()), NOTHING)


def pods(template: str, count: int = 1, **more: Any) -> dict[str, Any]:
    return {"opcode": "createPods", "count": count, "podTemplatePath": template, **more}


def groups(template: str) -> dict[str, Any]:
    return {"opcode": "createPodGroups", "count": 1, "namespace": "n", "templatePath": template}


def test_plain_pods_need_nothing(tmp_path: Path) -> None:
    template = a_template(tmp_path, "pod.yaml", asking("3"))
    assert lacking(tmp_path, NODES, pods(template, 2), featureGates={"DynamicResourceAllocation": True}) == []


def test_pods_that_outrank_others_and_do_not_fit_beside_them_need_preemption(tmp_path: Path) -> None:
    low = a_template(tmp_path, "low.yaml", asking("3", priority=1))
    high = a_template(tmp_path, "high.yaml", asking("3", priority=10))
    assert lacking(tmp_path, NODES, pods(low, 2), pods(high)) == ["preemption"]
    assert lacking(tmp_path, NODES, pods(low, 1), pods(high)) == []  # they fit
    assert lacking(tmp_path, NODES, pods(high, 2), pods(low, 2)) == []  # nobody is outranked
    assert lacking(tmp_path, NODES, pods(low, 2), pods(high, skipWaitToCompletion=True)) == []  # nobody waits for them
    waited = {"opcode": "barrier"}
    assert lacking(tmp_path, NODES, pods(low, 2), pods(high, skipWaitToCompletion=True), waited) == ["preemption"]


def test_claims_and_device_classes_need_device_claims(tmp_path: Path) -> None:
    claim = {"name": "r", "resourceClaimName": "c"}
    template = a_template(tmp_path, "pod.yaml", a_pod(resourceClaims=[claim]))
    assert lacking(tmp_path, NODES, pods(template)) == ["device claims"]
    item = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "d"}, "spec": {}}
    template = a_template(tmp_path, "class.yaml", item)
    assert lacking(tmp_path, {"opcode": "createAny", "templatePath": template}) == ["device claims"]
    allocated = lacking(tmp_path, {"opcode": "allocResourceClaims", "namespace": "n"})
    assert allocated == ["claims allocated beforehand (allocResourceClaims)"]


def test_a_gang_is_needed_when_pods_belong_to_one(tmp_path: Path) -> None:
    member = a_template(tmp_path, "pod.yaml", a_pod(schedulingGroup={"podGroupName": "g"}))
    gang = a_template(tmp_path, "gang.yaml", {**GROUP, "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}})
    basic = a_template(tmp_path, "basic.yaml", {**GROUP, "spec": {"schedulingPolicy": {"basic": {}}}})
    near = {"schedulingPolicy": {"gang": {}}, "schedulingConstraints": {"topology": [{"key": "rack"}]}}
    rack = a_template(tmp_path, "rack.yaml", {**GROUP, "spec": near})
    alone = a_template(tmp_path, "alone.yaml", a_pod())
    assert needs.GANGS.name in lacking(tmp_path, groups(gang), pods(member))
    assert lacking(tmp_path, groups(gang), pods(alone)) == []
    assert lacking(tmp_path, groups(basic), pods(member)) == []
    assert needs.TOPOLOGY.name in lacking(tmp_path, groups(rack), pods(member))


def test_a_steady_state_is_not_played(tmp_path: Path) -> None:
    template = a_template(tmp_path, "pod.yaml", a_pod())
    op = pods(template, steadyStateParam="$steady", duration="10s")
    assert lacking(tmp_path, op, params={"steady": True}) == ["pods created in a steady state"]
    assert lacking(tmp_path, op, params={"steady": False}) == []
