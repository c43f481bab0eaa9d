"""What is refused, what only warns, and what is left alone."""

from typing import Any

import pytest

from kubenexus.webhook.admission import MAX_LENGTH, MAX_WARNINGS, Response
from kubenexus.webhook.pod_sets import MAX_POD_SETS
from kubenexus.webhook.validation import ValidationSettings, validate
from tests.webhook.requests import MIN, NAME, job, meta, pod, request, template, within

TYPE = "workload.kubenexus.io/type"
BAD = {TYPE: "trainign"}
GANG = {NAME: "llama", MIN: "8"}
STRICT = ValidationSettings(strict_gangs=True)


def verdict(kind: str, data: Any, settings: ValidationSettings | None = None, **more: Any) -> Response:
    return validate(request(kind, data, **more), settings or ValidationSettings())


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        pytest.param("Pod", pod(), id="a pod without any key"),
        pytest.param("Pod", pod(GANG), id="a member of a gang alone: the others come later"),
        pytest.param("Job", job(template(GANG), 8), id="a gang of all pods of its job"),
        pytest.param("Job", job(template(GANG), 12), id="a gang that leaves some pods of its job out"),
        pytest.param("Deployment", within("Deployment", template(GANG | {MIN: "4"})), id="a gang of a deployment"),
        pytest.param("DaemonSet", within("DaemonSet", template(GANG)), id="as many as there are nodes"),
        pytest.param("Namespace", {"metadata": meta({"tenant.kubenexus.io/tier": "Gold"})}, id="a tier in any case"),
        pytest.param("ConfigMap", {"metadata": meta(BAD)}, id="a kind that nothing reads"),
        pytest.param("Pod", None, id="no object"),
        pytest.param("Pod", {"metadata": None, "spec": []}, id="what only the API server can refuse"),
        pytest.param("Job", {"spec": {"template": "x"}}, id="a template that is none"),
        pytest.param("JobSet", {"spec": {"replicatedJobs": [1, None, {"template": 2}]}}, id="jobs that are none"),
        pytest.param("PyTorchJob", {"spec": {"pytorchReplicaSpecs": {"Worker": None}}}, id="replicas that are none"),
    ],
)
def test_is_allowed_without_a_word(kind: str, data: Any) -> None:
    assert verdict(kind, data) == Response()


@pytest.mark.parametrize(
    ("kind", "data", "says"),
    [
        pytest.param("Pod", pod(BAD), f"label {TYPE}: must be one of", id="a word that is none"),
        pytest.param("Pod", pod({NAME: "a b", MIN: "2"}), "must be a name of letters", id="a gang's name that is none"),
        pytest.param("Pod", pod({NAME: "a", MIN: "0"}), "must be a whole number from 1", id="a gang of nothing"),
        pytest.param(
            "CronJob",
            within("CronJob", template(BAD)),
            "spec.jobTemplate.spec.template: label",
            id="in the template of a template",
        ),
        pytest.param(
            "JobSet",
            within("JobSet", template(BAD)),
            "spec.replicatedJobs.0.template.spec.template: label",
            id="in the first job of a JobSet",
        ),
        pytest.param(
            "Job",
            job(template(), annotations={"kubenexus.io/gang-scheduling": "yes"}),
            "annotation kubenexus.io/gang-scheduling: must be true or false, not 'yes'",
            id="a job that may or may not ask for a gang",
        ),
        pytest.param(
            "Namespace",
            {"metadata": meta({"tenant.kubenexus.io/tier": "platinum"})},
            "must be one of gold, silver, bronze, not 'platinum'",
            id="a tier that is none",
        ),
        pytest.param(
            "ResourceReservation",
            {"metadata": {"name": "r", "namespace": "ml"}, "spec": {"count": 1, "resources": {"cpu": "lots"}}},
            "spec.resources",
            id="a reservation of an amount that is none",
        ),
    ],
)
def test_is_refused_with_what_was_expected(kind: str, data: Any, says: str) -> None:
    found = verdict(kind, data)
    assert not found.allowed
    assert says in found.message
    relaxed = verdict(kind, data, ValidationSettings(only_warn=True))
    assert relaxed.allowed
    assert any(says in each for each in relaxed.warnings)


@pytest.mark.parametrize(
    ("kind", "data", "says"),
    [
        pytest.param(
            "Pod",
            pod({"workload.kubenexus.io/tpye": "batch"}),
            "is not known on a Pod; did you mean workload.kubenexus.io/type?",
            id="a typing error",
        ),
        pytest.param(
            "Pod",
            pod({"scheduling.kubenexus.io/numa-policy": "none"}, {"numa.scheduling.kubenexus.io/policy": "isolated"}),
            "says otherwise",
            id="two spellings that disagree",
        ),
        pytest.param("Pod", pod({NAME: "a"}), "makes no gang without", id="a gang without a minimum"),
        pytest.param("Pod", pod({MIN: "4"}), "has no effect without", id="a minimum without a gang"),
        pytest.param(
            "Job",
            job(template(), labels={TYPE: "batch"}),
            "has no effect on a Job; put it into the pod template",
            id="a key of pods on their job",
        ),
        pytest.param(
            "Namespace",
            {"metadata": meta({}, {"tenant.kubenexus.io/tier": "gold"})},
            "has no effect on a Namespace; make it a label",
            id="a tier as an annotation",
        ),
        pytest.param(
            "Pod",
            pod({}, {"scheduling.kubenexus.io/model-size": "huge"}),
            "scheduling.kubenexus.io/model-size: must be",
            id="a value that has no effect anyway",
        ),
        pytest.param(
            "Node", {"metadata": meta({"numa.kubenexus.io/node-count": "two"})}, "node-count: must be", id="on a node"
        ),
        pytest.param(
            "Pod", pod({}, {"kueue.x-k8s.io/pod-group-total-count": "x"}), "total-count: must be", id="another's key"
        ),
    ],
)
def test_only_warns(kind: str, data: Any, says: str) -> None:
    found = verdict(kind, data)
    assert found.allowed
    assert [each for each in found.warnings if says in each]


@pytest.mark.parametrize(
    ("data", "makes"),
    [
        pytest.param(("Job", job(template(GANG), 4)), 4, id="fewer pods at a time than the minimum"),
        pytest.param(("Job", job(template(GANG), 16, 6)), 6, id="fewer completions than the minimum"),
        pytest.param(("Job", job(template(GANG), None)), 1, id="a job of one pod, as jobs are"),
        pytest.param(("Deployment", within("Deployment", template(GANG))), 4, id="a deployment of four"),
        pytest.param(("JobSet", within("JobSet", template(GANG))), 4, id="two jobs of two"),
        pytest.param(("PyTorchJob", within("PyTorchJob", template(GANG))), 4, id="four workers"),
        pytest.param(("RayCluster", within("RayCluster", template(GANG))), 4, id="four Ray workers"),
        pytest.param(("SparkApplication", within("SparkApplication", template(GANG))), 4, id="four executors"),
    ],
)
def test_a_minimum_beyond_the_pods_of_the_object(data: tuple[str, Any], makes: int) -> None:
    kind, thing = data
    warned = verdict(kind, thing)
    said = f"gang ml/llama needs 8 pods, and this {kind} makes {makes}: it starts only if other objects make the others"
    assert warned.allowed
    assert [each for each in warned.warnings if each.endswith(said)]
    refused = verdict(kind, thing, STRICT)
    assert refused.message.endswith(f"this {kind} makes {makes}: it can never start")


def test_the_templates_of_one_object_add_up() -> None:
    def replicas(count: int, minimum: str) -> Any:
        return {"replicas": count, "template": template({NAME: "llama", MIN: minimum})}

    whole = {"spec": {"pytorchReplicaSpecs": {"Master": replicas(1, "4"), "Worker": replicas(3, "4")}}}
    assert verdict("PyTorchJob", whole, STRICT) == Response()
    apart = {"spec": {"pytorchReplicaSpecs": {"Master": replicas(1, "4"), "Worker": replicas(3, "5")}}}
    found = verdict("PyTorchJob", apart, STRICT)
    assert "needs 5 pods, and this PyTorchJob makes 4" in found.message
    assert "has the minimum 5 here and 4 in spec.pytorchReplicaSpecs.Master.template" in found.warnings[0]


@pytest.mark.parametrize(
    ("before", "after", "allowed"),
    [
        pytest.param(pod(BAD), pod(BAD | {"app": "x"}), True, id="a wrong value that was there before"),
        pytest.param(pod(BAD), pod(), True, id="a wrong value that goes"),
        pytest.param(pod(), pod(BAD), False, id="a wrong value that comes"),
        pytest.param(pod(BAD), pod({TYPE: "other"}), False, id="another wrong value"),
    ],
)
def test_an_update_is_refused_for_what_it_changes(before: Any, after: Any, allowed: bool) -> None:
    found = verdict("Pod", after, old=before)
    assert found.allowed is allowed
    assert bool(found.warnings) is (allowed and TYPE in after["metadata"]["labels"])


@pytest.mark.parametrize(
    ("data", "more"),
    [
        pytest.param(pod(BAD), {"operation": "DELETE"}, id="a deletion"),
        pytest.param(pod(BAD), {"operation": "CONNECT"}, id="a connection"),
        pytest.param({"metadata": meta(BAD, deletionTimestamp="now")}, {"old": pod()}, id="an object that is going"),
        pytest.param(
            {"metadata": meta(BAD, ownerReferences=[{"kind": "ReplicaSet", "controller": True}])},
            {},
            id="a pod that a controller made of a template from before",
        ),
    ],
)
def test_is_not_looked_at(data: Any, more: Any) -> None:
    assert verdict("Pod", data, **more) == Response()


def test_the_response_is_bounded() -> None:
    many = {f"x{i}.kubenexus.io/{'y' * 60}": "z" for i in range(5_000)}
    found = verdict("Pod", pod(many, many))
    assert len(found.warnings) <= MAX_WARNINGS + 1
    assert all(len(each) <= MAX_LENGTH for each in found.warnings)
    jobs = [{"template": {"spec": {"template": template(BAD)}}}] * (MAX_POD_SETS + 500)
    refused = verdict("JobSet", {"spec": {"replicatedJobs": jobs}})
    assert refused.message.endswith(f"and {MAX_POD_SETS - 5} more")
    assert refused.warnings[0] == f"only the first {MAX_POD_SETS} pod templates are checked"
