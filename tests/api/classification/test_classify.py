"""How the kind of work of a pod is found: what goes before what, and that the known bugs are absent."""

import pytest

from kubenexus.api.classification.workload import WorkloadType, classify, is_preemptible
from kubenexus.api.core import Container, ResourceRequirements
from kubenexus.api.keys import tenant, workload
from kubenexus.api.keys.reading import read_key
from kubenexus.testing.builders import GPU, a_pod
from tests.api.classification.builders import an_owned_pod

TYPE = "workload.kubenexus.io/type"
GANG = {"pod-group.scheduling.kubenexus.io/name": "g", "pod-group.scheduling.kubenexus.io/min-available": "4"}
SPARK, KSERVE = {"spark-role": "driver"}, {"serving.kserve.io/inferenceservice": "iris"}
KUBEFLOW, NOTEBOOK = {"training.kubeflow.org/job-name": "mnist"}, {"notebook-name": "mine"}
JUPYTER = "quay.io/jupyter/scipy-notebook:1"
NAME, COMPONENT = "app.kubernetes.io/name", "app.kubernetes.io/component"


def kind(**pod: object) -> str:
    return classify(a_pod(**pod)).type.value  # type: ignore[arg-type]


# --- our own key ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("said", [each.value for each in WorkloadType])
def test_the_key_goes_before_everything_in_any_case_as_label_and_annotation(said: str) -> None:
    assert kind(labels={TYPE: said}) == kind(labels={TYPE: said.upper()}) == kind(annotations={TYPE: said}) == said
    marks = GANG | SPARK | KSERVE | KUBEFLOW | NOTEBOOK | {NAME: "jupyter", COMPONENT: "predictor"}
    found = classify(a_pod(labels=marks | {TYPE: said}, image=JUPYTER, gpu=8))
    assert (found.type.value, found.reason, found.gang) == (said, f"key {TYPE}", True)


def test_the_label_goes_before_the_annotation() -> None:
    assert kind(labels={TYPE: "batch"}, annotations={TYPE: "service"}) == "batch"
    assert kind(labels={TYPE: "nonsense"}, annotations={TYPE: "batch"}) == "batch"


def test_an_invalid_value_is_a_warning_and_the_marks_count() -> None:
    assert kind(labels={TYPE: "nonsense"} | SPARK) == "batch"
    assert kind(labels={TYPE: "nonsense"}) == "service"
    assert read_key(workload.TYPE, {TYPE: "nonsense"}, {}).warnings


# --- precedence -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (NOTEBOOK | KUBEFLOW | KSERVE | SPARK, "interactive"),
        ({NAME: "jupyter"} | KUBEFLOW | SPARK, "interactive"),
        (KUBEFLOW | KSERVE | SPARK, "training"),
        (KSERVE | SPARK, "inference"),
        (KSERVE | GANG, "inference"),
        (SPARK, "batch"),
        (SPARK | {COMPONENT: "inference"}, "batch"),
        (SPARK | GANG, "training"),
        (GANG, "training"),
        (GANG | {COMPONENT: "serving"}, "training"),
        ({COMPONENT: "model-serving"}, "inference"),
        ({COMPONENT: "observing"}, "service"),
        ({}, "service"),
    ],
)
def test_marks_by_falling_precedence(labels: dict[str, str], expected: str) -> None:
    assert kind(labels=labels) == expected


def test_an_image_says_least() -> None:
    assert kind(image=JUPYTER) == "interactive"
    assert kind(image=JUPYTER, labels=KUBEFLOW) == "training"
    assert kind(image=JUPYTER, labels=SPARK) == "batch"
    assert classify(an_owned_pod("Job", "batch/v1", image=JUPYTER)).type is WorkloadType.BATCH
    assert kind(image=JUPYTER, labels={COMPONENT: "predictor"}) == "inference"


def a_container(**amounts: str) -> Container:
    return Container(name="c", resources=ResourceRequirements(requests={GPU: amounts["gpu"]}))


def test_several_gpus_of_the_whole_pod_make_a_batch_job_training() -> None:
    one, two = a_container(gpu="1"), a_container(gpu="2")
    assert kind(labels=SPARK, containers=[one]) == "batch"
    assert kind(labels=SPARK, containers=[two]) == "training"
    assert kind(labels=SPARK, containers=[one, one]) == "training"
    assert kind(labels=SPARK, containers=[one], init=[one]) == "batch", "one after the other"
    assert kind(labels=SPARK, containers=[one], init=[two]) == "training"
    assert kind(labels=SPARK, containers=[one], sidecars=[one]) == "training"
    assert kind(labels=SPARK, containers=[a_container(gpu="many")]) == "batch", "refused elsewhere"
    assert kind(containers=[two]) == "service"


@pytest.mark.parametrize("resource", ["amd.com/gpu", "gpu.intel.com/xe", "nvidia.com/mig-1g.10gb", "google.com/tpu"])
def test_gpus_of_all_makers_count(resource: str) -> None:
    assert kind(labels=SPARK, requests={resource: 4}) == "training"
    assert kind(labels=SPARK, requests={"example.com/disk": 4}) == "batch"


# --- the bugs of the first KubeNexus ----------------------------------------------------------------------------------


def test_cls_1_training_said_by_the_label_is_training() -> None:
    found = classify(a_pod(labels={TYPE: "training"})).type
    assert found is WorkloadType.TRAINING
    assert found.packs
    assert not any(each.packs for each in (WorkloadType.INFERENCE, WorkloadType.SERVICE, WorkloadType.INTERACTIVE))


@pytest.mark.parametrize("label", ["job-name", "replica-type", "replica-index", "job-role", "operator-name"])
def test_cls_2_kubeflow_labels_are_known(label: str) -> None:
    assert kind(labels={f"training.kubeflow.org/{label}": "x"}) == "training"


@pytest.mark.parametrize(
    ("labels", "annotations"),
    [
        (GANG, {}),
        ({}, GANG),
        ({"pod-group.scheduling.sigs.k8s.io/name": "g", "pod-group.scheduling.sigs.k8s.io/min-available": "2"}, {}),
        ({"gang.scheduling.kubenexus.io/name": "g"}, {"scheduling.kubenexus.io/min-available": "2"}),
        ({"scheduling.x-k8s.io/pod-group": "g"}, {}),
        ({"kueue.x-k8s.io/pod-group-name": "g"}, {"kueue.x-k8s.io/pod-group-total-count": "2"}),
        ({}, {"scheduling.k8s.io/group-name": "g"}),
        ({"scheduling.k8s.io/workload-name": "w"}, {}),
    ],
)
def test_pc_1_every_gang_that_the_resolver_knows_is_a_gang(labels: dict[str, str], annotations: dict[str, str]) -> None:
    found = classify(a_pod(labels=labels, annotations=annotations))
    assert (found.type, found.reason, found.gang) == (WorkloadType.TRAINING, "gang", True)


def test_a_gang_that_cannot_be_read_is_none() -> None:
    for text in ("0", "many"):
        found = classify(a_pod(labels=GANG | {"pod-group.scheduling.kubenexus.io/min-available": text}))
        assert (found.type, found.gang) == (WorkloadType.SERVICE, False)
    name_alone = {"pod-group.scheduling.kubenexus.io/name": "g"}
    assert kind(labels=name_alone) == "service"
    assert kind(labels=name_alone | SPARK) == "batch"


@pytest.mark.parametrize(
    "name", ["identity", "video", "provider", "gitlab", "label", "available", "replica", "video-lab7", "labs"]
)
def test_pc_2_a_part_of_a_word_is_no_mark(name: str) -> None:
    assert kind(labels={NAME: name}) == "service"


def test_pc_3_what_operators_write_is_read_before_the_question_of_batch_or_service() -> None:
    assert kind(labels=KUBEFLOW, gpu=1) == "training"
    assert kind(labels=KSERVE | {"batch.kubernetes.io/job-name": "warm-up"}) == "inference"


@pytest.mark.parametrize("key", ["scheduling.kubenexus.io/backfill", "backfill.scheduling.kubenexus.io/eligible"])
def test_pc_4_a_pod_that_fills_gaps_is_preemptible(key: str) -> None:
    for pod in (a_pod(labels={key: "true"}), a_pod(annotations={key: "true"})):
        assert is_preemptible(pod)
        assert classify(pod).preemptible
    assert not classify(a_pod(labels={key: "false"})).preemptible
    assert classify(a_pod(labels={key: "false"}, priority=-1)).preemptible


def test_pc_6_the_tier_of_a_pod_is_read_as_label_and_annotation() -> None:
    said = {"tenant.kubenexus.io/tier": "Silver"}
    assert read_key(tenant.POD_TIER, said, {}).value == read_key(tenant.POD_TIER, {}, said).value == "silver"


def test_x_2_an_ordinary_priority_is_not_preemptible() -> None:
    said = "workload.kubenexus.io/preemptible"
    for priority, labels, expected in (
        (0, {}, False),
        (100, {}, False),
        (-1, {}, True),
        (-1, {said: "false"}, False),
        (1000, {said: "true"}, True),
        (0, {said: "nonsense"}, False),
    ):
        pod = a_pod(priority=priority, labels=labels)
        assert is_preemptible(pod) is classify(pod).preemptible is expected
    assert not is_preemptible(a_pod(priority_class_name="low-priority"))
