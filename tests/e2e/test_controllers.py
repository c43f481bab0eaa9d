"""The embedded cluster's controllers against the real ones: the same wishes, and what kubectl shows of them."""

import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kubenexus.testing.controlplane import ControlPlane
from tests.e2e.manifests import a_daemon_set, a_deployment, a_job, a_stateful_set, all_of
from tests.e2e.test_contract_programs import Box

Kubectl = Callable[..., str]
SPACE = "same"
CONTAINER = 'name: c, image: "i:1"'
LEAVES_SOON = f"terminationGracePeriodSeconds: 1, containers: [{{{CONTAINER}}}]"
WORKLOADS = all_of(
    a_deployment(3, LEAVES_SOON),
    a_stateful_set(3, LEAVES_SOON),
    a_daemon_set(LEAVES_SOON),
    a_job("sums", CONTAINER, "completions: 5, parallelism: 3, completionMode: Indexed", run_seconds="1"),
    a_job("once", CONTAINER, run_seconds="1"),
    a_job("refused", CONTAINER, "backoffLimit: 0", refuse="OutOfcpu"),
    a_job("asleep", CONTAINER, "suspend: true"),
)
KINDS = ("deployments", "replicasets", "statefulsets", "daemonsets", "jobs", "pods")


def play(kubectl: Kubectl) -> Iterator[tuple[str, Any]]:
    """What is done, and what is seen then."""
    kubectl("apply", "-f-", stdin=WORKLOADS)
    for each in ("deployment/web", "statefulset/db", "daemonset/probe"):
        kubectl("rollout", "status", each, "--timeout=60s")
    kubectl("wait", "--for=condition=Complete", "job/sums", "job/once", "--timeout=60s")
    kubectl("wait", "--for=condition=Failed", "job/refused", "--timeout=60s")
    kubectl("wait", "--for=condition=Suspended", "job/asleep", "--timeout=60s")
    yield "all that was applied", seen(kubectl)
    kubectl("scale", "deployment/web", "--replicas=5")
    kubectl("wait", "--for=jsonpath={.status.readyReplicas}=5", "deployment/web", "--timeout=60s")
    kubectl("set", "image", "deployment/web", "statefulset/db", "daemonset/probe", "c=i:2")
    for each in ("deployment/web", "statefulset/db", "daemonset/probe"):
        kubectl("rollout", "status", each, "--timeout=90s")
    kubectl("scale", "statefulset/db", "--replicas=1")
    kubectl("wait", "--for=delete", "pod/db-1", "--timeout=60s")
    kubectl("wait", "--for=jsonpath={.status.replicas}=1", "statefulset/db", "--timeout=60s")
    kubectl("wait", "--for=jsonpath={.status.terminatingReplicas}=0", "deployment/web", "--timeout=60s")
    yield "a new version, other sizes", seen(kubectl)


def seen(kubectl: Kubectl) -> Any:
    listed = json.loads(kubectl("get", ",".join(KINDS), "-ojson"))["items"]
    hashes = {
        item["metadata"].get("labels", {}).get(key, "")
        for item in listed
        for key in ("pod-template-hash", "controller-revision-hash")
    }
    hashes |= {item.get("status", {}).get(key, "") for item in listed for key in ("currentRevision", "updateRevision")}
    marks = sorted((mark.rpartition("-")[2] for mark in hashes if mark), key=len)
    return sorted((essence(item, marks) for item in listed), key=lambda item: json.dumps(item, sort_keys=True))


def essence(item: dict[str, Any], hashes: list[str]) -> Any:
    """Without identities, moments and what chance or a hash has named; of a pod only what its controller wrote."""
    meta = item["metadata"]
    kept = {key: meta[key] for key in ("labels", "annotations", "generation", "finalizers") if key in meta}
    kept["name"] = meta["generateName"] + "*" if "generateName" in meta else meta["name"]
    kept["owners"] = [{key: owner.get(key) for key in OWNER} for owner in meta.get("ownerReferences", ())]
    if item["kind"] == "Pod":
        spec, status = of_pod(item["spec"]), {"phase": item["status"]["phase"]}
    else:
        spec, status = {"replicas": item["spec"].get("replicas")}, item.get("status", {})
    text = json.dumps({"kind": item["kind"], "metadata": kept, "spec": spec, "status": status})
    for mark in hashes:
        text = text.replace(mark, "HASH")
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID", text)
    text = re.sub(r'"20[0-9-]+T[0-9:]+Z"', '"TIME"', text)
    return without_noise(json.loads(text))


OWNER = ("apiVersion", "kind", "name", "controller", "blockOwnerDeletion")
POD = ("affinity", "tolerations", "hostname", "subdomain", "restartPolicy")


def of_pod(spec: dict[str, Any]) -> dict[str, Any]:
    known = {key: spec[key] for key in POD if key in spec}
    return {**known, "env": [container.get("env", []) for container in spec["containers"]]}


def without_noise(item: Any) -> Any:
    """The order of conditions and of tolerations is nobody's promise, nor is the number of steps of a rollout. The
    annotation of DaemonSets is the server's, which ours does not write."""
    for key in ("kubectl.kubernetes.io/last-applied-configuration", "deprecated.daemonset.template.generation"):
        item["metadata"].get("annotations", {}).pop(key, None)
    if item["kind"] == "ReplicaSet":
        assert item["status"].pop("observedGeneration") == item["metadata"].pop("generation")
    item["status"]["conditions"] = sorted(item["status"].get("conditions", ()), key=lambda each: str(each["type"]))
    item["spec"].get("tolerations", []).sort(key=str)
    return item


@pytest.fixture
def real(plane: ControlPlane, controllers: object, agents: Callable[..., object]) -> Iterator[Kubectl]:
    agents("--nodes=3")
    scheduler = plane.start_scheduler()
    plane.kubectl("create", "namespace", SPACE)

    def kubectl(*arguments: str, stdin: str = "") -> str:
        return plane.kubectl(f"--namespace={SPACE}", *arguments, stdin=stdin)

    yield kubectl
    plane.kubectl("delete", "namespace", SPACE, "--wait=false")
    scheduler.stop()


@pytest.fixture
def boxed(tmp_path: Path, assets: Path) -> Iterator[Kubectl]:
    box = Box(tmp_path, assets)
    box.agents("--nodes=3")
    command = [sys.executable, "-m", "kubenexus", "run", f"--kubeconfig={box.kubeconfig}", "--leader-elect=false"]
    box.family.start([*command, "--secure-port=0", "--scheduler-name=default-scheduler"], "scheduler")
    box.kubectl("create", "namespace", SPACE)

    def kubectl(*arguments: str, stdin: str = "") -> str:
        return box.kubectl(f"--namespace={SPACE}", *arguments, stdin=stdin)

    yield kubectl
    box.family.close()


def test_the_same_wishes_come_true_in_the_same_way(real: Kubectl, boxed: Kubectl) -> None:
    for (what, theirs), (_, ours) in zip(play(real), play(boxed), strict=True):
        assert ours == theirs, what
