"""What operators write on their pods shows the kind of work, label by label and owner by owner."""

import msgspec
import pytest

from kubenexus.api.classification.operators import LABELS, MAX_OWNERS, OWNERS
from kubenexus.api.classification.workload import WorkloadType, classify
from kubenexus.api.codec import decode_pod
from kubenexus.api.meta import OwnerReference
from kubenexus.testing.builders import a_pod
from tests.api.classification.builders import an_owned_pod, with_owners
from tests.api.classification.operator_pods import OPERATOR_PODS, OperatorPod


@pytest.mark.parametrize("each", [pytest.param(each, id=each.case) for each in OPERATOR_PODS])
def test_the_pods_of_an_operator_are_known(each: OperatorPod) -> None:
    found = classify(each.pod)
    assert (found.type, found.reason) == (each.type, each.reason)


@pytest.mark.parametrize(("kind", "key"), [(kind, key) for kind, keys in LABELS.items() for key in keys])
def test_each_label_alone_is_a_mark(kind: WorkloadType, key: str) -> None:
    assert classify(a_pod(labels={key: "x"}))[:2] == (kind, f"label {key}")


@pytest.mark.parametrize(
    ("kind", "group", "expected"),
    [(kind, group, expected) for kind, groups in OWNERS.items() for group, expected in groups.items()],
)
def test_an_owner_counts_with_its_api_group(kind: str, group: str, expected: WorkloadType) -> None:
    assert classify(an_owned_pod(kind, f"{group}/v1"))[:2] == (expected, f"owner {kind}")
    assert classify(an_owned_pod(kind, "example.com/v1")).type is WorkloadType.SERVICE
    assert classify(an_owned_pod(kind.lower(), f"{group}/v1")).type is WorkloadType.SERVICE


@pytest.mark.parametrize("kind", ["ReplicaSet", "StatefulSet", "DaemonSet", "Node", "Pod"])
def test_other_owners_are_no_mark(kind: str) -> None:
    assert classify(an_owned_pod(kind, "apps/v1")).type is WorkloadType.SERVICE


def test_the_origin_of_a_ray_cluster_tells_a_service_from_a_job() -> None:
    ray = {"ray.io/node-type": "worker"}
    assert classify(a_pod(labels=ray | {"ray.io/originated-from-crd": "RayService"})).type is WorkloadType.INFERENCE
    assert classify(a_pod(labels=ray | {"ray.io/originated-from-crd": "RayJob"})).type is WorkloadType.BATCH


def test_owners_beyond_the_first_are_not_looked_at() -> None:
    others = [OwnerReference(kind="ReplicaSet", api_version="apps/v1")] * (MAX_OWNERS - 1)
    job = OwnerReference(kind="Job", api_version="batch/v1")
    assert classify(with_owners(a_pod(), [*others, job])).type is WorkloadType.BATCH
    assert classify(with_owners(a_pod(), [*others, others[0], job])).type is WorkloadType.SERVICE


def test_the_fields_are_decoded() -> None:
    owner = {"kind": "Job", "apiVersion": "batch/v1", "name": "a", "uid": "u", "controller": True}
    resources = {"limits": {"nvidia.com/gpu": "2"}}
    container = {"name": "c", "image": "quay.io/jupyter/scipy-notebook:1", "resources": resources}

    def decoded(**meta: object) -> tuple[str, str]:
        named = {"name": "p", "namespace": "n", "uid": "u"} | meta
        return classify(decode_pod(msgspec.json.encode({"metadata": named, "spec": {"containers": [container]}})))[:2]

    assert decoded(ownerReferences=[owner]) == ("training", "owner Job and 2 GPUs")
    assert decoded() == ("interactive", "jupyter in an image")
