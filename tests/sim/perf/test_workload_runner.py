"""Workloads are played: each operation does what scheduler_perf's does, and a wait in vain is told."""

from pathlib import Path
from typing import Any

import pytest

from tests.sim.perf.workloads import a_case, a_pod, a_template, asking, play

NODES = {"opcode": "createNodes", "count": 2}
LABELLED = {"metadata": {"generateName": "pod-", "labels": {"type": "x"}}}


def pods(template: str = "", count: int = 1, **more: Any) -> dict[str, Any]:
    named = {"podTemplatePath": template} if template else {}
    return {"opcode": "createPods", "count": count, **named, **more}


def test_pods_are_placed_in_the_namespace_of_their_operation(tmp_path: Path) -> None:
    lines: list[str] = []
    result = play(a_case(tmp_path, NODES, pods(count=4)), write=lines.append)
    assert (result.problem, result.nodes, result.wanted, result.got, result.placed) == ("", 2, 4, 4, 4)
    assert all(line.split()[1].startswith("namespace-1/pod-") for line in lines)
    assert {line.split()[3] for line in lines} == {"node-0-0", "node-0-1"}


def test_the_same_seed_is_the_same_play_and_another_is_another(tmp_path: Path) -> None:
    file = a_case(tmp_path, NODES, pods(count=20))
    first, again, other = play(file, seed=1), play(file, seed=1), play(file, seed=2)
    assert first == again
    assert first.fingerprint != other.fingerprint


def test_what_does_not_fit_is_told_after_ten_minutes_with_the_reason(tmp_path: Path) -> None:
    big = a_template(tmp_path, "big.yaml", asking("3"))
    result = play(a_case(tmp_path, NODES, pods(big, 3)))
    assert (result.wanted, result.got, result.failed) == (3, 2, True)
    assert result.problem.startswith("after 600 s namespace-1/pod-")
    assert "has no node (1 such pods): 0/2 nodes are available: 2 Insufficient cpu. preemption: " in result.problem
    assert 600 <= result.virtual < 602


def test_an_operation_after_a_wait_in_vain_is_not_played(tmp_path: Path) -> None:
    big = a_template(tmp_path, "big.yaml", asking("9"))
    assert play(a_case(tmp_path, NODES, pods(big), pods(count=5))).placed == 0


def test_a_barrier_waits_for_what_was_skipped(tmp_path: Path) -> None:
    """A label selector leaves the others out; `Attempted` is content with a refusal."""
    big = a_template(tmp_path, "big.yaml", {**asking("9"), **LABELLED})
    small = a_template(tmp_path, "small.yaml", asking("1"))
    skipped = [pods(big, 2, skipWaitToCompletion=True), pods(small, 2, skipWaitToCompletion=True)]
    tried = play(a_case(tmp_path, NODES, *skipped, {"opcode": "barrier", "stageRequirement": "Attempted"}))
    assert (tried.problem, tried.wanted, tried.placed) == ("", 0, 2)
    some = play(a_case(tmp_path, NODES, *skipped, {"opcode": "barrier", "namespaces": ["namespace-2"]}))
    assert (some.problem, some.wanted, some.got) == ("", 2, 2)
    chosen = play(a_case(tmp_path, NODES, *skipped, {"opcode": "barrier", "labelSelector": {"type": "x"}}))
    assert (chosen.wanted, chosen.got, chosen.failed) == (2, 0, True)


def test_blockers_that_are_deleted_make_space(tmp_path: Path) -> None:
    blocker = {**asking("3", terminationGracePeriodSeconds=0), **LABELLED}
    ops = [
        NODES,
        pods(a_template(tmp_path, "blocker.yaml", blocker), 2, namespace="full"),
        pods(a_template(tmp_path, "next.yaml", asking("3")), 2, namespace="full", skipWaitToCompletion=True),
        {"opcode": "barrier", "stageRequirement": "Attempted"},
        {"opcode": "deletePods", "namespace": "full", "labelSelector": {"type": "x"}, "deletePodsPerSecond": 10},
        {"opcode": "barrier"},
    ]
    result = play(a_case(tmp_path, *ops))
    assert (result.problem, result.wanted, result.got, result.placed) == ("", 4, 4, 4)


def test_an_update_makes_a_node_take_pods(tmp_path: Path) -> None:
    status = {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"}}
    node: dict[str, Any] = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n-{{.Index}}"}, "status": status}
    ops = [
        {**NODES, "nodeTemplatePath": a_template(tmp_path, "node.yaml", {**node, "spec": {"unschedulable": True}})},
        pods(count=3, skipWaitToCompletion=True),
        {"opcode": "barrier", "stageRequirement": "Attempted"},
        {
            "opcode": "updateAny",
            "templatePath": a_template(tmp_path, "open.yaml", node),
            "count": 1,
            "updatePerSecond": 2,
        },
        {"opcode": "barrier"},
    ]
    lines: list[str] = []
    result = play(a_case(tmp_path, *ops), write=lines.append)
    assert (result.problem, result.got) == ("", 3)
    assert {line.split()[3] for line in lines if "->" in line} == {"n-0"}


def test_churn_goes_on_beside_everything(tmp_path: Path) -> None:
    lines: list[str] = []
    other = a_template(tmp_path, "churn.yaml", {**asking("9"), "metadata": {"generateName": "churn-"}})
    churn = {"opcode": "churn", "mode": "create", "number": 3, "intervalMilliseconds": 100, "templatePaths": [other]}
    result = play(a_case(tmp_path, NODES, churn, pods(count=2), pods(count=2)), write=lines.append)
    assert (result.problem, result.placed) == ("", 4)
    assert sum("churn-" in line and "refused" in line for line in lines) >= 1


def test_recreated_objects_come_and_go(tmp_path: Path) -> None:
    template = a_template(tmp_path, "churn.yaml", asking("1", terminationGracePeriodSeconds=0))
    churn = {
        "opcode": "churn",
        "mode": "recreate",
        "number": 1,
        "intervalMilliseconds": 100,
        "templatePaths": [template],
    }
    result = play(a_case(tmp_path, NODES, churn, {"opcode": "sleep", "duration": "1050ms"}))
    assert (result.problem, result.placed) == ("", 5)  # ten ticks: made, deleted, made, ...


def test_volumes_are_there_and_bound(tmp_path: Path) -> None:
    spec = {"accessModes": ["ReadOnlyMany"], "capacity": {"storage": "1Gi"}, "csi": {"driver": "d"}}
    volume = {"apiVersion": "v1", "kind": "PersistentVolume", "spec": spec}
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "true"}},
        "spec": {"accessModes": ["ReadOnlyMany"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    limits = {"csiNodeAllocatable": {"d": {"count": 2}}}
    files = {
        "persistentVolumeTemplatePath": a_template(tmp_path, "pv.yaml", volume),
        "persistentVolumeClaimTemplatePath": a_template(tmp_path, "pvc.yaml", claim),
    }
    result = play(a_case(tmp_path, {**NODES, "nodeAllocatableStrategy": limits}, pods(count=4, **files)))
    assert (result.problem, result.got) == ("", 4)
    full = play(a_case(tmp_path, {**NODES, "nodeAllocatableStrategy": limits}, pods(count=5, **files)))
    assert "2 node(s) exceed max volume count. preemption: " in full.problem


@pytest.mark.parametrize(("gate", "placed"), [(True, 3), (False, 1)])
def test_pods_of_a_group_share_its_claim_if_the_gate_of_the_workload_is_on(
    tmp_path: Path, gate: bool, placed: int
) -> None:
    """Without it the server drops the claims of PodGroups, and each pod needs a device of its own: there is one."""
    v1, claims = "resource.k8s.io/v1", [{"name": "c", "resourceClaimTemplateName": "t"}]
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    things = {
        "class": {"apiVersion": v1, "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}},
        "slice": {
            "apiVersion": v1,
            "kind": "ResourceSlice",
            "metadata": {"name": "s"},
            "spec": {"driver": "d.io", "allNodes": True, "pool": pool, "devices": [{"name": "d0"}]},
        },
        "template": {
            "apiVersion": v1,
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": "t"},
            "spec": {"spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}},
        },
        "group": {
            "apiVersion": "scheduling.k8s.io/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": "g"},
            "spec": {"schedulingPolicy": {"basic": {}}, "resourceClaims": claims},
        },
        "pod": a_pod(resourceClaims=claims, schedulingGroup={"podGroupName": "g"}),
    }
    files = {name: a_template(tmp_path, f"{name}.yaml", item) for name, item in things.items()}
    ops: list[dict[str, Any]] = [{"opcode": "createAny", "templatePath": files[each]} for each in ("class", "slice")]
    ops += [{"opcode": "createAny", "templatePath": files["template"], "namespace": "n"}]
    ops += [{"opcode": "createPodGroups", "templatePath": files["group"], "namespace": "n", "count": 1}]
    gates = {"GenericWorkload": True, "DRAWorkloadResourceClaims": gate}
    result = play(a_case(tmp_path, NODES, *ops, pods(files["pod"], 3, namespace="n"), featureGates=gates))
    assert (result.placed, result.failed) == (placed, placed < 3), result.problem


def test_nodes_get_labels_in_turn(tmp_path: Path) -> None:
    zones = {"labelKey": "zone", "labelValues": ["a", "b"]}
    only = a_template(tmp_path, "pod.yaml", a_pod(nodeSelector={"zone": "b"}))
    lines: list[str] = []
    nodes = {"opcode": "createNodes", "count": 4, "labelNodePrepareStrategy": zones}
    result = play(a_case(tmp_path, nodes, pods(only, 8)), write=lines.append)
    assert result.problem == ""
    assert {line.split()[3] for line in lines} == {"node-0-1", "node-0-3"}


def test_names_of_fields_are_read_as_go_reads_them(tmp_path: Path) -> None:
    assert play(
        a_case(tmp_path, NODES, pods(a_template(tmp_path, "p.yaml", a_pod(NodeSelector={"no": "where"}))))
    ).failed
    unknown = a_template(tmp_path, "u.yaml", a_pod(nodeSelektor={}))
    assert play(a_case(tmp_path, NODES, pods(unknown))).problem.endswith('u.yaml: unknown field "spec.nodeSelektor"')


def test_what_the_server_refuses_is_told(tmp_path: Path) -> None:
    wrong = a_template(tmp_path, "pod.yaml", a_pod(restartPolicy="Sometimes"))
    result = play(a_case(tmp_path, NODES, pods(wrong)))
    assert result.problem.startswith("POST /api/v1/namespaces/namespace-1/pods: Pod ")
    assert "spec.restartPolicy" in result.problem


@pytest.mark.parametrize(
    ("params", "problem"),
    [({}, "Case/w: parameter $n is not among the workload's params"), ({"n": "x"}, "parameter $n is 'x'; expected")],
)
def test_a_parameter_that_cannot_be_used_is_told(tmp_path: Path, params: dict[str, Any], problem: str) -> None:
    assert problem in play(a_case(tmp_path, {"opcode": "createNodes", "countParam": "$n"}, params=params)).problem


def test_a_template_that_is_not_there_is_told(tmp_path: Path) -> None:
    assert play(a_case(tmp_path, NODES, pods("gone.yaml"))).problem.endswith("gone.yaml: No such file or directory")
    nowhere = play(a_case(tmp_path, NODES, schedulerConfigPath="nowhere.yaml"))
    assert nowhere.problem.endswith("nowhere.yaml: No such file or directory")
