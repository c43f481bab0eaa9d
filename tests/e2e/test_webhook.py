"""The webhook that the chart installs, behind the real API server: it refuses, warns and changes, and may be away."""

import concurrent.futures
import re
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubenexus.testing.controlplane import ClusterClient, ControlPlane, ManagedProcess, RequestRefused
from kubenexus.testing.controlplane.plane import free_ports
from tests.deploy.manifests import CHART
from tests.e2e.scheduling import a_pod
from tests.e2e.test_chart import HOME, Helm, helm, ours

__all__ = ["helm"]  # a fixture

ROOT = Path(__file__).parents[2]
NAME = "kubenexus-scheduler-webhook"
CONFIGURATIONS = [
    f"/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations" for kind in ("validating", "mutating")
]
SECRETS = f"/api/v1/namespaces/{HOME}/secrets"
BAD = {"workload.kubenexus.io/type": "trainign"}
GANG = "pod-group.scheduling.kubenexus.io"


@pytest.fixture
def webhook(helm: Helm, plane: ControlPlane, cluster: ClusterClient) -> Iterator[ManagedProcess]:
    """The chart is installed with the webhook; the process that its pods would run, with the same account and flags."""
    values = "--set=webhook.enabled=true,webhook.mutating.gpuClass=true"
    helm.succeeds("install", "kubenexus", str(CHART), "--create-namespace", values)
    (port,) = free_ports(1)
    point_to(cluster, port)
    account = plane.service_account_kubeconfig(HOME, NAME)
    deployment = cluster.get(f"/apis/apps/v1/namespaces/{HOME}/deployments/{NAME}")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    flags = [flag for flag in container["args"] if not flag.startswith("--secure-port")]
    here = [f"--kubeconfig={account}", f"--secure-port={port}", "--bind-address=127.0.0.1"]
    program = plane.family.start([sys.executable, "-m", "kubenexus", *flags, *here], "webhook")
    program.until(lambda: "Serving admission reviews" in program.said())
    yield program
    program.stop()
    helm("uninstall", "kubenexus", "--ignore-not-found")


def point_to(cluster: ClusterClient, port: int) -> None:
    """Makes the API server call a port of this machine: no network leads to the Service here."""
    for path in CONFIGURATIONS:
        found = cluster.get(f"{path}/{NAME}")
        for each in found["webhooks"]:
            each["clientConfig"] = {"url": f"https://127.0.0.1:{port}{each['clientConfig']['service']['path']}"}
        cluster.send("PUT", f"{path}/{NAME}", found)


def labelled(name: str, labels: dict[str, str], **metadata: Any) -> Any:
    return a_pod(name, "1", metadata={"labels": labels} | metadata)


def refusal(cluster: ClusterClient, namespace: str, pod: Any) -> str:
    """What the API server says against a pod, "" if it would take it."""
    try:
        cluster.send("POST", f"/api/v1/namespaces/{namespace}/pods?dryRun=All", pod)
    except RequestRefused as problem:
        return str(problem)
    return ""


def test_it_refuses_and_changes_objects_and_nothing_fails_when_it_is_away(
    helm: Helm, webhook: ManagedProcess, plane: ControlPlane, cluster: ClusterClient, namespace: str
) -> None:
    for path in CONFIGURATIONS:
        cluster.until(path, lambda all: trusted(all[NAME]), "the API server trusts the certificate", seconds=60)
    # The API server reads its configurations a moment later.
    webhook.until(lambda: bool(refusal(cluster, namespace, labelled("bad", BAD))))
    said = refusal(cluster, namespace, labelled("bad", BAD))
    assert "validate.webhook.kubenexus.io" in said
    assert "label workload.kubenexus.io/type: must be one of training, inference" in said

    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "old", "uid": "u", "controller": True}
    assert refusal(cluster, namespace, labelled("made", BAD, ownerReferences=[owner])) == ""

    job = cluster.create(a_job("train", 8), namespace)
    template = job["spec"]["template"]
    assert template["metadata"]["labels"][f"{GANG}/name"] == "job.train"
    assert template["metadata"]["labels"][f"{GANG}/min-available"] == "8"
    assert template["spec"]["schedulerName"] == "kubenexus-scheduler"

    tenant = {"tenant.kubenexus.io/tier": "gold", "scheduling.kubenexus.io/scheduler-name": "kubenexus-scheduler"}
    cluster.create(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"{namespace}-gold", "labels": tenant}}
    )
    pod = a_pod("gpu", "1")
    pod["spec"].pop("schedulerName", None)
    pod["spec"]["containers"][0]["resources"]["limits"] = {"nvidia.com/gpu": "1"}
    made = cluster.create(pod, f"{namespace}-gold")
    (term,) = made["spec"]["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert term["preference"]["matchExpressions"][0]["values"] == ["h100"]
    assert made["spec"]["schedulerName"] == "kubenexus-scheduler"

    webhook.stop()
    assert refusal(cluster, namespace, labelled("bad", BAD)) == "", "failurePolicy: Ignore"
    cluster.delete(f"/api/v1/namespaces/{namespace}-gold")
    measured = plane.kubectl("get", "--raw=/metrics")
    page = (ROOT / "docs" / "webhook.md").read_text(encoding="utf-8")
    for metric in re.findall(r"^\| `(apiserver_\w+)`", page, re.MULTILINE):
        assert re.search(rf'^{metric}\w*{{.*name="validate\.webhook\.kubenexus\.io"', measured, re.MULTILINE), metric

    helm.succeeds("uninstall", "kubenexus")
    assert ours(cluster) == set()
    left = [path for path in (*CONFIGURATIONS, SECRETS) if NAME in "".join(cluster.objects(path))]
    assert left == []


def test_it_is_restarted_under_load(webhook: ManagedProcess, cluster: ClusterClient, namespace: str) -> None:
    """While pods are created all the time: what is right is never refused, and what is wrong only ever by its own
    message, or not at all while it is away."""
    for path in CONFIGURATIONS:
        cluster.until(path, lambda all: trusted(all[NAME]), "the API server trusts the certificate", seconds=60)
    webhook.until(lambda: bool(refusal(cluster, namespace, labelled("bad", BAD))))
    good, wrong = labelled("good", {"workload.kubenexus.io/type": "training"}), labelled("bad", BAD)
    over = threading.Event()

    def load() -> list[tuple[str, str]]:
        said = []
        while not over.is_set():
            said.append((refusal(cluster, namespace, good), refusal(cluster, namespace, wrong)))
        return said

    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        loads = [threads.submit(load) for _ in range(4)]
        for stop in (webhook.stop, webhook.kill):
            webhook.until(lambda: bool(refusal(cluster, namespace, wrong)))
            stop()
            assert refusal(cluster, namespace, wrong) == ""
            begun = webhook.said().count("Serving admission reviews")
            webhook.start()
            webhook.until(lambda count=begun: webhook.said().count("Serving admission reviews") > count)  # type: ignore[misc]
        webhook.until(lambda: bool(refusal(cluster, namespace, wrong)))
        over.set()
        said = [pair for each in loads for pair in each.result(timeout=60)]
    assert len(said) > 20
    assert {right for right, _ in said} == {""}
    assert {bool(answer) for _, answer in said} == {True, False}, "refused while it was there, stored while it was away"
    assert all("label workload.kubenexus.io/type: must be one of" in answer for _, answer in said if answer)


def test_an_upgrade_keeps_the_certificate_and_the_trust_in_it(
    helm: Helm, plane: ControlPlane, cluster: ClusterClient
) -> None:
    helm.succeeds("install", "kubenexus", str(CHART), "--create-namespace", "--set=webhook.enabled=true")
    try:
        account = plane.service_account_kubeconfig(HOME, NAME)
        names = [f"--service={NAME}", f"--namespace={HOME}", f"--secret={NAME}-tls", f"--configuration={NAME}"]
        here = [f"--kubeconfig={account}", "--secure-port=0", "--bind-address=127.0.0.1", *names]
        program = plane.family.start([sys.executable, "-m", "kubenexus", "webhook", *here], "webhook-upgraded")
        program.until(lambda: "Serving admission reviews" in program.said())
        program.stop()
        before = state(cluster)
        assert all(before)
        helm.succeeds("upgrade", "kubenexus", str(CHART), "--set=webhook.enabled=true,webhook.timeoutSeconds=3")
        assert state(cluster) == before
        assert cluster.get(f"{CONFIGURATIONS[0]}/{NAME}")["webhooks"][0]["timeoutSeconds"] == 3
    finally:
        helm("uninstall", "kubenexus", "--ignore-not-found")


def state(cluster: ClusterClient) -> list[Any]:
    """The certificate, and what the API server trusts."""
    bundles = [
        each["clientConfig"].get("caBundle")
        for path in CONFIGURATIONS
        for each in cluster.get(f"{path}/{NAME}")["webhooks"]
    ]
    return [cluster.get(f"{SECRETS}/{NAME}-tls").get("data"), *bundles]


def trusted(configuration: Any) -> bool:
    return all(each["clientConfig"].get("caBundle") for each in configuration["webhooks"])


def a_job(name: str, parallelism: int) -> Any:
    containers = [{"name": "main", "image": "nginx"}]
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "annotations": {"kubenexus.io/gang-scheduling": "true"}},
        "spec": {
            "parallelism": parallelism,
            "template": {"spec": {"restartPolicy": "Never", "containers": containers}},
        },
    }
