"""`kubenexus whatif`: where the pods of a manifest would go, and what a change of nodes would do."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from kubenexus.cli import main
from tests.explain.test_explain_gangs import LEAST, NAME
from tests.explain.test_explanation import node, pod

TEMPLATE: dict[str, Any] = {
    "spec": {
        "schedulerName": "kubenexus-scheduler",
        "containers": [{"name": "c", "resources": {"limits": {"cpu": "1"}}}],
    }
}
CLUSTER = [node("n1", "2"), node("n2", "2")]


def workload(kind: str, version: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "w", "namespace": "web"}, "spec": spec}


def run(folder: Path, documents: list[Any], *options: str, cluster: list[Any] = CLUSTER) -> Result:
    (folder / "dump.json").write_text(json.dumps({"kind": "List", "items": cluster}))
    (folder / "w.yaml").write_text(yaml.safe_dump_all(documents))
    files = ["-f", str(folder / "w.yaml")] if documents else []
    return CliRunner().invoke(main, ["whatif", "--cluster", str(folder / "dump.json"), *files, *options])


def placed(result: Result) -> dict[str, str]:
    return {pod: node for job in json.loads(result.output)["jobs"] for pod, node in job["nodes"].items()}


@pytest.mark.parametrize(
    ("document", "pods"),
    [
        pytest.param(pod("w", "1"), {"w"}, id="a Pod"),
        pytest.param(
            workload("Job", "batch/v1", {"parallelism": 3, "completions": 2, "template": TEMPLATE}),
            {"w-0", "w-1"},
            id="a Job starts no more pods than it needs completions",
        ),
        pytest.param(
            workload("Deployment", "apps/v1", {"replicas": 3, "template": TEMPLATE}),
            {"w-0", "w-1", "w-2"},
            id="a Deployment",
        ),
        pytest.param(
            workload(
                "JobSet",
                "jobset.x-k8s.io/v1alpha2",
                {
                    "replicatedJobs": [
                        {"name": "a", "replicas": 2, "template": {"spec": {"template": TEMPLATE}}},
                        {"name": "b", "template": {"spec": {"parallelism": 2, "template": TEMPLATE}}},
                    ]
                },
            ),
            {"w-a-0-0", "w-a-1-0", "w-b-0-0", "w-b-0-1"},
            id="a JobSet",
        ),
        pytest.param(
            workload(
                "PyTorchJob",
                "kubeflow.org/v1",
                {
                    "pytorchReplicaSpecs": {
                        "Master": {"template": TEMPLATE},
                        "Worker": {"replicas": 2, "template": TEMPLATE},
                    }
                },
            ),
            {"w-master-0", "w-worker-0", "w-worker-1"},
            id="a PyTorchJob",
        ),
    ],
)
def test_the_pods_of_a_kind(tmp_path: Path, document: Any, pods: set[str]) -> None:
    result = run(tmp_path, [document], "-o", "json")
    assert result.exit_code == 0, result.output
    assert set(placed(result)) == {f"web/{name}" for name in pods}


def test_limits_count_as_requests_and_earlier_pods_as_placed(tmp_path: Path) -> None:
    """Four cores in all: the fifth pod has no node."""
    result = run(tmp_path, [workload("Deployment", "apps/v1", {"replicas": 5, "template": TEMPLATE})])
    assert result.exit_code == 2
    assert result.output.count(" n1\n") == result.output.count(" n2\n") == 2
    assert "WAITS    web/w-4: 1 of 1 pods" in result.output
    assert "WHY      0/2 nodes are available: 2 Insufficient cpu." in result.output


def test_a_gang_goes_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    template = {**TEMPLATE, "metadata": {"labels": {NAME: "w", LEAST: "5"}}}
    job = workload("Job", "batch/v1", {"parallelism": 5, "template": template})
    result = run(tmp_path, [job])
    assert result.exit_code == 2
    assert "WAITS    web/w: 5 of 5 pods" in result.output
    result = run(tmp_path, [job], "--add-node", "n1", "-o", "json")
    assert result.exit_code == 0
    assert "n1-new-0" in placed(result).values()


def test_a_pod_group_of_the_manifest_counts(tmp_path: Path) -> None:
    group = {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "web"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}},
    }
    members = [pod(f"m{i}", "2", schedulingGroup={"podGroupName": "g"}) for i in range(2)]
    assert len(placed(run(tmp_path, [group, *members], "-o", "json"))) == 2


def test_pods_of_lower_priority_would_be_evicted_and_are_named(tmp_path: Path) -> None:
    classes = [{"kind": "PriorityClass", "metadata": {"name": "high"}, "value": 100}]
    running = [pod(f"b{i}", "2", nodeName=f"n{i}", schedulerName="kubenexus-scheduler") for i in (1, 2)]
    wanted = pod("w", "1", schedulerName="kubenexus-scheduler", priorityClassName="high")
    result = run(tmp_path, [wanted], cluster=[*CLUSTER, *running, *classes])
    assert result.exit_code == 2
    assert "EVICT    web/b" in result.output
    assert "THEN ON  n" in result.output


def test_without_a_manifest_it_is_about_the_pods_that_wait_and_those_of_removed_nodes(tmp_path: Path) -> None:
    cluster = [
        *CLUSTER,
        pod("runs", "1", nodeName="n1"),
        pod("waits", "2", nodeSelector={"kubernetes.io/hostname": "n2"}),
    ]
    result = run(tmp_path, [], "--remove-node", "n1", "-o", "json", cluster=cluster)
    assert placed(result) == {"web/runs": "n2"}
    assert run(tmp_path, [], "--cordon", "n2", cluster=cluster).exit_code == 2
    assert run(tmp_path, [], cluster=cluster).exit_code == 0


@pytest.mark.parametrize(
    ("documents", "options", "told"),
    [
        pytest.param([], ["--cordon", "x"], "node x does not exist", id="a node that is not there"),
        pytest.param([], ["--add-node", "n1=x"], "expected NODE or NODE=NUMBER, not 'n1=x'", id="no number"),
        pytest.param([{"a": 1}], [], "expected Kubernetes objects with a kind", id="no object"),
        pytest.param([workload("Job", "batch/v1", {})], [], "Job w: has no pod template", id="no template"),
        pytest.param([workload("Route", "x/v1", {})], [], "makes no pods, or its kind is not known", id="unknown kind"),
        pytest.param([pod("w", "1", priorityClassName="x")], [], "the PriorityClass x does not exist", id="no class"),
        pytest.param(
            [workload("Deployment", "apps/v1", {"replicas": 20_000, "template": TEMPLATE})],
            [],
            "more than 10000 pods",
            id="too many pods",
        ),
    ],
)
def test_what_cannot_be_used_is_one_line(tmp_path: Path, documents: list[Any], options: list[str], told: str) -> None:
    result = run(tmp_path, documents, *options)
    assert result.exit_code == 1
    assert told in result.output
    assert len(result.output.splitlines()) == 1
