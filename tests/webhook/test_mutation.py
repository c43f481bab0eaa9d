"""What the mutating webhooks add, and what they leave as it is."""

from typing import Any

import pytest

from kubenexus.webhook.admission import Response, part
from kubenexus.webhook.json_patch import CannotPatch, append_item, pointer, set_entries
from kubenexus.webhook.mutation import (
    GpuClassSettings,
    gang_name,
    mutate_gang,
    mutate_gpu_class,
    mutate_scheduler_name,
)
from kubenexus.webhook.pod_sets import MAX_POD_SETS
from kubenexus.webhook.spark import jvm_bytes
from tests.webhook.requests import MIN, NAME, applied, job, meta, request, template, within

ASKS = {"kubenexus.io/gang-scheduling": "true"}
CLASS = "gpu.nvidia.com/class"


def asking(data: Any) -> Any:
    return data | {"metadata": {"name": "train", "annotations": ASKS}}


def spec_of(**fields: Any) -> Any:
    return asking({"spec": fields})


def gangs(kind: str, data: Any) -> dict[str, str]:
    """The gang labels after the mutation, by the place of the template: `name minimum`."""
    done = applied(data, mutate_gang(request(kind, data)).patch)
    found: dict[str, str] = {}

    def walk(value: Any, path: str) -> None:
        if isinstance(value, dict):
            labels = part(value, "labels")
            if NAME in labels:
                found[path.replace(".template", "").replace(".metadata", "")] = f"{labels[NAME]} {labels[MIN]}"
            for key, inner in value.items():
                walk(inner, f"{path}.{key}" if path else key)
        elif isinstance(value, list):
            for number, inner in enumerate(value):
                walk(inner, f"{path}.{number}")

    walk(done, "")
    return found


def replicas(count: int | None) -> Any:
    return {"template": {"spec": {"containers": []}}} | ({} if count is None else {"replicas": count})


def jobs(*counts: tuple[int, int], **more: Any) -> Any:
    listed = [
        {"name": f"j{i}", "replicas": each, "template": {"spec": {"parallelism": pods, "template": template()}}}
        for i, (each, pods) in enumerate(counts)
    ]
    return spec_of(replicatedJobs=listed, **more)


def workers(*groups: Any, **more: Any) -> Any:
    listed = [{"template": template()} | each for each in groups]
    return spec_of(headGroupSpec={"template": template()}, workerGroupSpecs=listed, **more)


@pytest.mark.parametrize(
    ("kind", "data", "expected"),
    [
        pytest.param("Job", asking(job(template(), 8)), {"spec": "job.train 8"}, id="all pods of a job"),
        pytest.param("Job", asking(job(template(), 8, 5)), {"spec": "job.train 5"}, id="no more than completions"),
        pytest.param("Job", asking(job(template(), None)), {"spec": "job.train 1"}, id="a job of one"),
        pytest.param("Job", asking(job(template(), 0)), {}, id="a job of none"),
        pytest.param(
            "JobSet",
            jobs((2, 3), (1, 1)),
            {"spec.replicatedJobs.0.spec": "jobset.train 7", "spec.replicatedJobs.1.spec": "jobset.train 7"},
            id="a JobSet's jobs together",
        ),
        pytest.param(
            "JobSet",
            jobs((2, 3), (1, 1), startupPolicy={"startupPolicyOrder": "InOrder"}),
            {"spec.replicatedJobs.0.spec": "jobset.train.j0 6", "spec.replicatedJobs.1.spec": "jobset.train.j1 1"},
            id="jobs that start one after the other are gangs of their own",
        ),
        pytest.param(
            "PyTorchJob",
            spec_of(pytorchReplicaSpecs={"Master": replicas(None), "Worker": replicas(7)}),
            {
                "spec.pytorchReplicaSpecs.Master": "pytorchjob.train 8",
                "spec.pytorchReplicaSpecs.Worker": "pytorchjob.train 8",
            },
            id="master and workers",
        ),
        pytest.param(
            "PyTorchJob",
            spec_of(pytorchReplicaSpecs={"Worker": replicas(7)}, elasticPolicy={"minReplicas": 2, "maxReplicas": 9}),
            {"spec.pytorchReplicaSpecs.Worker": "pytorchjob.train 2"},
            id="an elastic job starts with its fewest workers",
        ),
        pytest.param(
            "MPIJob",
            spec_of(mpiReplicaSpecs={"Launcher": replicas(None), "Worker": replicas(4)}),
            {"spec.mpiReplicaSpecs.Launcher": "mpijob.train 5", "spec.mpiReplicaSpecs.Worker": "mpijob.train 5"},
            id="launcher and workers",
        ),
        pytest.param(
            "MPIJob",
            spec_of(
                mpiReplicaSpecs={"Launcher": replicas(1), "Worker": replicas(4)},
                launcherCreationPolicy="WaitForWorkersReady",
            ),
            {"spec.mpiReplicaSpecs.Worker": "mpijob.train 4"},
            id="a launcher that comes when the workers are ready",
        ),
        pytest.param(
            "RayCluster",
            workers({"replicas": 3}, {"replicas": 2, "numOfHosts": 4}),
            dict.fromkeys(
                ("spec.headGroupSpec", "spec.workerGroupSpecs.0", "spec.workerGroupSpecs.1"), "raycluster.train 12"
            ),
            id="head and workers, with several hosts each",
        ),
        pytest.param(
            "RayCluster",
            workers({"replicas": 3, "minReplicas": 1}, enableInTreeAutoscaling=True),
            dict.fromkeys(("spec.headGroupSpec", "spec.workerGroupSpecs.0"), "raycluster.train 2"),
            id="with an autoscaler the fewest workers",
        ),
        pytest.param(
            "SparkApplication",
            spec_of(driver={}, executor={"instances": 3}),
            {"spec.executor": "sparkapplication.train 3"},
            id="executors alone: the driver makes them",
        ),
        pytest.param(
            "SparkApplication",
            spec_of(driver={}, executor={"instances": 3}, dynamicAllocation={"enabled": True}),
            {},
            id="with dynamic allocation executors come one by one",
        ),
        pytest.param("Job", job(template(), 8), {}, id="a job that does not ask"),
        pytest.param("Deployment", asking(within("Deployment", template())), {}, id="a kind that cannot ask"),
        pytest.param("Job", asking({"spec": {"template": "x"}}), {}, id="a template that is none"),
    ],
)
def test_pods_of_a_job_become_a_gang(kind: str, data: Any, expected: dict[str, str]) -> None:
    assert gangs(kind, data) == expected


@pytest.mark.parametrize(
    "labels",
    [
        pytest.param({NAME: "own", MIN: "2"}, id="a gang of our keys"),
        pytest.param({NAME: "own"}, id="half a gang"),
        pytest.param({"scheduling.x-k8s.io/pod-group": "own"}, id="a PodGroup of another project"),
        pytest.param({NAME: "!", MIN: "2"}, id="a gang that cannot be read"),
    ],
)
def test_a_gang_that_is_stated_stays(labels: dict[str, str]) -> None:
    assert mutate_gang(request("Job", asking(job(template(labels), 8)))) == Response()


def test_jobs_that_depend_on_others_are_gangs_of_their_own() -> None:
    data = jobs((1, 2), (1, 3))
    data["spec"]["replicatedJobs"][1]["dependsOn"] = [{"name": "j0", "status": "Ready"}]
    assert sorted(gangs("JobSet", data).values()) == ["jobset.train.j0 2", "jobset.train.j1 3"]


def test_a_job_with_too_many_templates_is_left_alone_with_a_warning() -> None:
    found = mutate_gang(request("JobSet", jobs(*[(1, 1)] * (MAX_POD_SETS + 1))))
    assert (found.patch, found.warnings) == ((), (f"no gang labels: more than {MAX_POD_SETS} pod templates",))


def test_twice_is_once() -> None:
    data = asking(job(template(), 8))
    once = applied(data, mutate_gang(request("Job", data), "kubenexus-scheduler").patch)
    assert mutate_gang(request("Job", once), "kubenexus-scheduler") == Response()
    assert once["spec"]["template"]["spec"]["schedulerName"] == "kubenexus-scheduler"


def test_an_update_changes_nothing() -> None:
    data = asking(job(template(), 8))
    assert mutate_gang(request("Job", data, old=data)) == Response()


def test_a_name_that_is_yet_to_be_generated_gets_a_unique_gang() -> None:
    data = job(template(), 2) | {"metadata": {"generateName": "train-", "annotations": ASKS}}
    assert gangs("Job", data) == {"spec": "job.train-5f0c9a7e 2"}


@pytest.mark.parametrize("name", ["n" * 63, "n" * 200, "a" * 58 + "-"])
def test_a_gangs_name_fits_into_a_label(name: str) -> None:
    import re

    made = gang_name("PyTorchJob", name)
    assert re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?", made)
    assert made != gang_name("PyTorchJob", name + "x")


def test_a_spark_driver_states_the_room_of_its_executors() -> None:
    data = spec_of(driver={}, executor={"instances": 3, "cores": 4, "memory": "8g"})
    done = applied(data, mutate_gang(request("SparkApplication", data)).patch)
    assert done["spec"]["driver"]["annotations"] == {
        "kubenexus.io/executor-count": "3",
        "kubenexus.io/executor-cpu": "4",
        "kubenexus.io/executor-memory": "9012Mi",
    }
    dynamic = spec_of(driver={}, executor={"memory": "1g"}, dynamicAllocation={"enabled": True, "minExecutors": 2})
    done = applied(dynamic, mutate_gang(request("SparkApplication", dynamic)).patch)
    assert done["spec"]["driver"]["annotations"] == {
        "kubenexus.io/dynamic-allocation-enabled": "true",
        "kubenexus.io/min-executors": "2",
        "kubenexus.io/executor-memory": "1408Mi",
    }


@pytest.mark.parametrize(
    ("text", "size"),
    [("512m", 2**29), ("4G", 2**32), ("4gb", 2**32), ("1t", 2**40), ("100", 100), ("x", 0), (None, 0), ("-1g", 0)],
)
def test_sizes_as_the_jvm_writes_them(text: object, size: int) -> None:
    assert jvm_bytes(text) == size


NAMESPACE = {"scheduling.kubenexus.io/scheduler-name": "kubenexus-scheduler"}


@pytest.mark.parametrize(
    ("spec", "namespace", "expected"),
    [
        pytest.param({"containers": []}, NAMESPACE, "kubenexus-scheduler", id="a pod that names none"),
        pytest.param({"schedulerName": "default-scheduler"}, NAMESPACE, "kubenexus-scheduler", id="the default"),
        pytest.param({"schedulerName": "volcano"}, NAMESPACE, "volcano", id="a pod that names another"),
        pytest.param({"schedulerName": "default-scheduler"}, {}, "default-scheduler", id="a namespace that names none"),
        pytest.param({"nodeName": "n1"}, NAMESPACE, None, id="a pod that has its node"),
    ],
)
def test_the_scheduler_of_the_namespace(spec: Any, namespace: Any, expected: str | None) -> None:
    data = {"metadata": {}, "spec": spec}
    done = applied(data, mutate_scheduler_name(request("Pod", data), namespace).patch)
    assert done["spec"].get("schedulerName") == expected


def gpu_pod(labels: Any = None, resource: str = "nvidia.com/gpu", part_: str = "limits", **spec: Any) -> Any:
    container = {"name": "main", "resources": {part_: {resource: "1"}}}
    return {"metadata": meta(labels), "spec": {"containers": [container]} | spec}


def preferred(data: Any) -> list[str]:
    affinity = part(data, "spec", "affinity", "nodeAffinity")
    terms = affinity.get("preferredDuringSchedulingIgnoredDuringExecution", [])
    return [value for term in terms for each in term["preference"]["matchExpressions"] for value in each["values"]]


GOLD = {"tenant.kubenexus.io/tier": "gold"}


@pytest.mark.parametrize(
    ("data", "namespace", "expected"),
    [
        pytest.param(gpu_pod(), GOLD, ["h100"], id="gold prefers H100"),
        pytest.param(gpu_pod(), {"tenant.kubenexus.io/tier": "Silver"}, ["a100"], id="silver, in any case"),
        pytest.param(gpu_pod(), {"tenant.kubenexus.io/tier": "bronze"}, ["l4"], id="bronze"),
        pytest.param(gpu_pod({"tenant.kubenexus.io/tier": "bronze"}), GOLD, ["l4"], id="a pod lowers its tier"),
        pytest.param(gpu_pod(GOLD), {"tenant.kubenexus.io/tier": "bronze"}, ["l4"], id="a pod cannot raise its tier"),
        pytest.param(gpu_pod(resource="amd.com/gpu", part_="requests"), GOLD, ["h100"], id="GPUs of AMD"),
        pytest.param(gpu_pod(resource="nvidia.com/mig-1g.10gb"), GOLD, ["h100"], id="a part of a GPU"),
        pytest.param(gpu_pod(resource="cpu"), GOLD, [], id="a pod without GPUs"),
        pytest.param(gpu_pod(), {}, [], id="a namespace without a tier"),
        pytest.param(gpu_pod(nodeSelector={CLASS: "l4"}), GOLD, [], id="a pod that selects a class"),
        pytest.param(
            gpu_pod(containers=[], initContainers=[{"resources": {"limits": {"nvidia.com/gpu": 1}}}]),
            GOLD,
            ["h100"],
            id="GPUs of an init container",
        ),
    ],
)
def test_pods_prefer_the_class_of_their_tier(data: Any, namespace: Any, expected: list[str]) -> None:
    once = applied(data, mutate_gpu_class(request("Pod", data), namespace, GpuClassSettings()).patch)
    assert preferred(once) == expected
    assert mutate_gpu_class(request("Pod", once), namespace, GpuClassSettings()) == Response()


def test_other_preferences_stay() -> None:
    term = {"weight": 1, "preference": {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}}
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}
    data = gpu_pod(affinity=affinity)
    done = applied(data, mutate_gpu_class(request("Pod", data), GOLD, GpuClassSettings()).patch)
    assert preferred(done) == ["a", "h100"]


def test_a_required_class_is_a_selector_or_in_every_term() -> None:
    one = GpuClassSettings(required=True)
    data = gpu_pod()
    done = applied(data, mutate_gpu_class(request("Pod", data), GOLD, one).patch)
    assert done["spec"]["nodeSelector"] == {CLASS: "h100"}
    several = GpuClassSettings({"gold": ("h200", "h100")}, required=True)
    terms = [{"matchExpressions": [{"key": "zone", "operator": "Exists"}]}, {"matchFields": []}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    for given in (gpu_pod(), gpu_pod(affinity={"nodeAffinity": required})):
        done = applied(given, mutate_gpu_class(request("Pod", given), GOLD, several).patch)
        found = done["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        for each in found["nodeSelectorTerms"]:
            assert each["matchExpressions"][-1] == {"key": CLASS, "operator": "In", "values": ["h200", "h100"]}


def test_pointers_are_escaped() -> None:
    assert pointer("a/b", "c~d", "~1") == "/a~1b/c~0d/~01"


def test_what_is_missing_on_the_way_is_made() -> None:
    assert applied({}, set_entries({}, ("a", "b"), {"x/y": 1})) == {"a": {"b": {"x/y": 1}}}
    assert applied({"a": {"b": None}}, set_entries({"a": {"b": None}}, ("a", "b"), {"c": 1})) == {"a": {"b": {"c": 1}}}
    assert applied({}, append_item({}, ("a", "b"), 1)) == {"a": {"b": [1]}}
    for data in ({"a": 1}, {"a": "x"}, {"a": {"b": 7}}):
        with pytest.raises(CannotPatch):
            set_entries(data, ("a", "b"), {"c": 1})
    with pytest.raises(CannotPatch):
        append_item({"a": {}}, ("a",), 1)
