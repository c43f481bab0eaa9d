"""Beside a real Kueue on a real API server: it admits, we place, and nothing that is admitted waits for a place.

A control plane of its own: Kueue's webhooks fail closed, and would stop the pods of all other tests once it is gone.
"""

import itertools
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from kubenexus.testing.controlplane import ClusterClient, ControlPlane, Object, Objects
from tests.e2e.cleaning import remove
from tests.e2e.kueue import build
from tests.e2e.kueue.running import Kueue
from tests.e2e.scheduling import NAME, Starter, a_node, condition, make_nodes, placed, pods

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "kueue"
API = "/apis/kueue.x-k8s.io/v1beta2"
NUMBERS = itertools.count(1)
QUEUE = "kueue.x-k8s.io/queue-name"
# There are no agents that would end a pod.
ENDS_AT_ONCE = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0}
PATIENCE = 60.0  # seconds: Kueue's controllers work in rounds


@pytest.fixture(scope="module")
def kueue_plane(assets: Path, request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """A control plane with controllers, Kueue and our scheduler, which answers AdmissionChecks."""
    folder = build.assets()
    if not build.is_complete(folder):
        pytest.fail(f"no Kueue in {folder}; run `make kueue` first", pytrace=False)
    home = Path(tempfile.mkdtemp(prefix="kubenexus-kueue-"))
    before = request.session.testsfailed
    with ControlPlane(assets, home) as plane:
        # Nodes have no agents here, and must not be judged by their heartbeats.
        plane.start_controllers("--controllers=*,-node-lifecycle-controller,-nodelifecycle")
        with Kueue(folder, plane), Starter(plane) as start:
            start(f"--config={EXAMPLES / 'scheduler-config.yaml'}")
            yield plane
    if request.session.testsfailed == before:
        shutil.rmtree(home)


@pytest.fixture
def kueue(kueue_plane: ControlPlane) -> Iterator[ClusterClient]:
    seen = kueue_plane.cluster()
    yield seen
    ours = [each for each in seen.objects("/api/v1/namespaces") if each.startswith("kueue-e2e")]
    for namespace in (*ours, "default"):
        jobs, kueues = f"/apis/batch/v1/namespaces/{namespace}/jobs", f"{API}/namespaces/{namespace}"
        for collection in (
            jobs,
            pods(namespace),
            f"{kueues}/workloads",
            f"{kueues}/localqueues",
            jobs,
            pods(namespace),
        ):
            remove(seen, collection)
    remove(seen, f"{API}/clusterqueues")
    seen.until("/api/v1/pods", lambda all: not all, "all pods are gone", seconds=PATIENCE)
    for name in seen.objects("/api/v1/nodes"):
        seen.delete(f"/api/v1/nodes/{name}")


@pytest.fixture
def namespace(kueue: ClusterClient) -> str:
    name = f"kueue-e2e-{next(NUMBERS)}"
    kueue.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    return name


# --- objects --------------------------------------------------------------------------------------------------------


def kueue_object(kind: str, name: str, namespace: str = "", **spec: Any) -> Object:
    meta = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": meta, "spec": spec}


def make_flavor(cluster: ClusterClient, name: str, **spec: Any) -> None:
    if name not in cluster.objects(f"{API}/resourceflavors"):
        cluster.create(kueue_object("ResourceFlavor", name, **spec))


def make_queue(cluster: ClusterClient, namespace: str, name: str, cpu: int, flavor: str = "plain", **spec: Any) -> None:
    """A ClusterQueue with this quota, and a LocalQueue of the same name."""
    quota = {"name": "cpu", "nominalQuota": str(cpu)}
    groups = [{"coveredResources": ["cpu"], "flavors": [{"name": flavor, "resources": [quota]}]}]
    unique = f"{namespace}-{name}"
    cluster.create(kueue_object("ClusterQueue", unique, namespaceSelector={}, resourceGroups=groups, **spec))
    cluster.create(kueue_object("LocalQueue", name, namespace, clusterQueue=unique))


def a_job(name: str, queue: str, size: int, cpu: str = "1", scheduler: str = NAME, **template: Any) -> Object:
    container = {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": cpu}}}
    spec = {"schedulerName": scheduler, "containers": [container], **ENDS_AT_ONCE}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": {QUEUE: queue}},
        "spec": {"parallelism": size, "completions": size, "template": {"metadata": template, "spec": spec}},
    }


def a_group(name: str, queue: str, size: int, cpu: str = "1") -> list[Object]:
    """Plain pods that Kueue admits together."""
    container = {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": cpu}}}
    labels = {QUEUE: queue, "kueue.x-k8s.io/pod-group-name": name}
    notes = {"kueue.x-k8s.io/pod-group-total-count": str(size)}
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"{name}-{i}", "labels": labels, "annotations": notes},
            "spec": {"schedulerName": NAME, "containers": [container], **ENDS_AT_ONCE},
        }
        for i in range(size)
    ]


def of(job: str, objects: Objects) -> Objects:
    """The live pods of a job or group."""
    return {
        name: each
        for name, each in objects.items()
        if name.startswith(f"{job}-") and not each["metadata"].get("deletionTimestamp")
    }


def on_nodes(job: str, size: int) -> Callable[[Objects], bool]:
    return lambda all: len(placed(of(job, all))) == size


def until_placed(cluster: ClusterClient, namespace: str, job: str, size: int) -> Objects:
    what = f"all {size} pods of {job} are on nodes"
    return of(job, cluster.until(pods(namespace), on_nodes(job, size), what, seconds=PATIENCE))


def finish(cluster: ClusterClient, namespace: str, job: str) -> None:
    """The pods of a job succeed, which else an agent would report."""
    for name in of(job, cluster.objects(pods(namespace))):
        cluster.patch(f"{pods(namespace)}/{name}/status", {"status": {"phase": "Succeeded"}})


def delete_job(cluster: ClusterClient, namespace: str, job: str) -> None:
    """Deletes a job with its pods, which by default would stay."""
    options = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
    cluster.send("DELETE", f"/apis/batch/v1/namespaces/{namespace}/jobs/{job}", options)


def workload_of(cluster: ClusterClient, namespace: str, job: str) -> Object:
    found = cluster.objects(f"{API}/namespaces/{namespace}/workloads")
    (workload,) = [each for name, each in found.items() if name == job or name.startswith(f"job-{job}-")]
    return workload


def has(workload: Object, kind: str) -> bool:
    return any(
        each["type"] == kind and each["status"] == "True" for each in workload.get("status", {}).get("conditions", [])
    )


# --- three queues ---------------------------------------------------------------------------------------------------


def test_jobs_and_groups_in_three_queues_borrow_and_give_back(kueue: ClusterClient, namespace: str) -> None:
    make_nodes(kueue, *(a_node(f"n{i}", cpu="4") for i in range(3)))
    make_flavor(kueue, "plain")
    reclaim = {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"}
    for name in ("a", "b", "c"):
        make_queue(kueue, namespace, name, 4, cohortName=namespace, preemption=reclaim)

    kueue.create(a_job("borrower", "a", 8), namespace)  # 4 of its own, 4 that b and c do not use
    until_placed(kueue, namespace, "borrower", 8)
    for pod in a_group("group", "b", 4):
        kueue.create(pod, namespace)
    until_placed(kueue, namespace, "group", 4)  # the cluster is full now

    kueue.create(a_job("owner", "c", 4), namespace)  # takes back what was borrowed from c
    until_placed(kueue, namespace, "owner", 4)
    seen = kueue.until(
        pods(namespace),
        lambda all: not placed(of("borrower", all)),
        "the borrower is evicted as a whole",
        seconds=PATIENCE,
    )
    assert len(placed(of("group", seen))) == 4
    assert not has(workload_of(kueue, namespace, "borrower"), "Admitted")

    finish(kueue, namespace, "owner")  # and what comes free is borrowed again
    until_placed(kueue, namespace, "borrower", 8)


def test_gated_pods_are_not_touched(kueue: ClusterClient, namespace: str) -> None:
    make_nodes(kueue, a_node("n0", cpu="8"))
    make_flavor(kueue, "plain")
    make_queue(kueue, namespace, "q", 2)
    for pod in (*a_group("first", "q", 2), *a_group("second", "q", 2)):
        kueue.create(pod, namespace)
    until_placed(kueue, namespace, "first", 2)
    waiting = of("second", kueue.objects(pods(namespace)))
    assert placed(waiting) == {}
    gates = {gate["name"] for pod in waiting.values() for gate in pod["spec"]["schedulingGates"]}
    assert "kueue.x-k8s.io/admission" in gates
    assert all(condition(waiting, name).get("reason") in (None, "SchedulingGated") for name in waiting)
    finish(kueue, namespace, "first")
    until_placed(kueue, namespace, "second", 2)


# --- topology -------------------------------------------------------------------------------------------------------


def test_pods_land_where_kueue_assigned_them(kueue: ClusterClient, namespace: str) -> None:
    """Two racks of two nodes; a job that must be within one rack, and one whose domains are nodes."""
    racks = {"r1": ("a0", "a1"), "r2": ("b0", "b1")}
    make_nodes(
        kueue,
        *(a_node(name, cpu="2", rack=rack, pool="tas") for rack, names in racks.items() for name in names),
    )
    if "racks" not in kueue.objects(f"{API}/topologies"):
        levels = [{"nodeLabel": "rack"}, {"nodeLabel": "kubernetes.io/hostname"}]
        kueue.create(kueue_object("Topology", "racks", levels=levels))
    make_flavor(kueue, "tas", nodeLabels={"pool": "tas"}, topologyName="racks")
    make_queue(kueue, namespace, "q", 8, "tas")
    asks = {"kueue.x-k8s.io/podset-required-topology": "rack"}
    kueue.create(a_job("rack", "q", 4, annotations=asks), namespace)
    seen = until_placed(kueue, namespace, "rack", 4)
    kueue.create(a_job("other", "q", 3, annotations=asks), namespace)
    others = until_placed(kueue, namespace, "other", 3)
    for job, found in (("rack", seen), ("other", others)):
        assignment = workload_of(kueue, namespace, job)["status"]["admission"]["podSetAssignments"][0]
        assert assignment["topologyAssignment"]["levels"] == ["kubernetes.io/hostname"]
        assert {each["spec"]["nodeSelector"]["kubernetes.io/hostname"] for each in found.values()} == set(
            placed(found).values()
        )
    (first,), (second,) = ({_rack(node, racks) for node in placed(found).values()} for found in (seen, others))
    assert first != second


def _rack(node: str, racks: Mapping[str, tuple[str, ...]]) -> str:
    return next(rack for rack, names in racks.items() if node in names)


# --- the AdmissionCheck ---------------------------------------------------------------------------------------------


def test_with_the_check_nothing_that_is_admitted_waits_for_a_place(
    kueue: ClusterClient, kueue_plane: ControlPlane, namespace: str
) -> None:
    """Four nodes with one CPU left of two each: quota for a job of two pods with two CPUs, and no place for it. Beside
    it a job of the same size for kube-scheduler, in a queue without the check: it is admitted, and waits with quota in
    hand."""
    make_nodes(kueue, *(a_node(f"n{i}", cpu="2") for i in range(4)))
    make_flavor(kueue, "plain")
    if "placement" not in kueue.objects(f"{API}/admissionchecks"):
        kueue.create(kueue_object("AdmissionCheck", "placement", controllerName="kubenexus.io/placement"))
    checked: dict[str, Any] = {"admissionChecksStrategy": {"admissionChecks": [{"name": "placement"}]}}
    make_queue(kueue, namespace, "checked", 8, **checked)
    make_queue(kueue, namespace, "unchecked", 4)
    for i in range(4):
        container = {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": "1"}}}
        piece = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"piece-{i}"}}
        kueue.create({**piece, "spec": {"nodeName": f"n{i}", "containers": [container]}}, namespace)

    upstream = kueue_plane.start_scheduler()
    try:
        kueue.create(a_job("big", "checked", 2, cpu="2"), namespace)
        kueue.create(a_job("theirs", "unchecked", 2, cpu="2", scheduler="default-scheduler"), namespace)
        workloads = f"{API}/namespaces/{namespace}/workloads"
        refused = kueue.until(
            workloads,
            lambda all: _retried(_of_job(all, "big")) and has(_of_job(all, "theirs"), "Admitted"),
            "ours is refused by the check, theirs is admitted",
            seconds=PATIENCE,
        )
        assert not has(_of_job(refused, "big"), "Admitted")
        assert of("big", kueue.objects(pods(namespace))) == {}, "no pod waits"
        kueue.until(
            pods(namespace),
            lambda all: [condition(all, name)["reason"] for name in of("theirs", all)] == ["Unschedulable"] * 2,
            "theirs are admitted and wait",
            seconds=PATIENCE,
        )
        kueue.create(a_job("small", "checked", 2, cpu="1"), namespace)  # what has a place goes ahead
        until_placed(kueue, namespace, "small", 2)
        delete_job(kueue, namespace, "theirs")
        delete_job(kueue, namespace, "small")
        for i in range(2):
            kueue.delete(f"{pods(namespace)}/piece-{i}", grace=0)
        until_placed(kueue, namespace, "big", 2)
    finally:
        upstream.stop()


def test_the_examples_work(kueue: ClusterClient) -> None:
    make_nodes(kueue, *(a_node(f"n{i}", cpu="4") for i in range(2)))
    for name in ("queues.yaml", "job.yaml"):
        kueue.apply((EXAMPLES / name).read_text(encoding="utf-8"))
    until_placed(kueue, "default", "train", 4)
    (check,) = workload_of(kueue, "default", "train")["status"]["admissionChecks"]
    assert (check["state"], check["message"]) == ("Ready", "all pods have a place")


def _of_job(workloads: Objects, job: str) -> Object:
    return [each for name, each in workloads.items() if name.startswith(f"job-{job}-")][0]  # noqa: RUF015 - IndexError


def _retried(workload: Object) -> bool:
    """The check has refused it once: Kueue resets the state itself, and keeps the count."""
    checks = workload.get("status", {}).get("admissionChecks", [])
    return any(each.get("state") == "Retry" or each.get("retryCount", 0) > 0 for each in checks)
