"""Any body gets an answer: a verdict, or Malformed. Nothing else is raised, and a patch can always be applied."""

import contextlib
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubenexus.api.keys import KEYS
from kubenexus.base.errors import Malformed
from kubenexus.webhook.admission import (
    MAX_LENGTH,
    MAX_REASONS,
    AdmissionRequest,
    decode_outline,
    decode_review,
    encode_review,
)
from kubenexus.webhook.mutation import GpuClassSettings, mutate_gang, mutate_gpu_class, mutate_scheduler_name
from kubenexus.webhook.validation import ValidationSettings, validate
from tests.webhook.requests import GROUPS, applied, within

ASKS = {"kubenexus.io/gang-scheduling": "true"}
KINDS = (*GROUPS, "Pod", "Namespace", "Node", "Unheard")
KEY = st.sampled_from(sorted(KEYS)) | st.text(max_size=8)
ODD = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8)
TEXTS = st.dictionaries(KEY, st.text(max_size=12) | ODD, max_size=4) | ODD
FIELDS = st.sampled_from(
    [
        "metadata",
        "spec",
        "template",
        "labels",
        "annotations",
        "replicas",
        "parallelism",
        "completions",
        "executor",
        "replicatedJobs",
        "driver",
        "pytorchReplicaSpecs",
        "mpiReplicaSpecs",
        "headGroupSpec",
        "workerGroupSpecs",
        "containers",
        "resources",
        "limits",
        "nvidia.com/gpu",
        "affinity",
        "nodeAffinity",
        "schedulerName",
    ]
)
THING = st.recursive(
    ODD | TEXTS,
    lambda inner: st.dictionaries(FIELDS, inner, max_size=4) | st.lists(inner, max_size=3),
    max_leaves=12,
)
TEMPLATE = st.fixed_dictionaries(
    {"metadata": st.fixed_dictionaries({"labels": TEXTS, "annotations": TEXTS})}, optional={"spec": THING}
)
WORKLOAD = st.builds(within, st.sampled_from([*GROUPS][:13]), TEMPLATE) | THING


def body(kind: str, operation: str, data: Any, old: Any) -> bytes:
    request = {"uid": "u", "operation": operation, "object": data, "oldObject": old, "namespace": "ml"}
    request["kind"] = {"group": GROUPS.get(kind, ""), "version": "v1", "kind": kind}
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).encode()


def answer(request: AdmissionRequest) -> None:
    found = validate(request, ValidationSettings(strict_gangs=True))
    assert len(found.message) <= (MAX_LENGTH + 2) * (MAX_REASONS + 1)
    assert all(len(each) <= MAX_LENGTH for each in found.warnings)
    labels = {"tenant.kubenexus.io/tier": "gold", "scheduling.kubenexus.io/scheduler-name": "ours"}
    changes = [
        mutate_gang(request, "ours"),
        mutate_scheduler_name(request, labels),
        *(mutate_gpu_class(request, labels, GpuClassSettings(required=each)) for each in (True, False)),
    ]
    for change in changes:
        assert change.allowed
        applied(request.object, change.patch)
    for each in (found, *changes):
        assert msgspec.json.decode(encode_review("u", each))["response"]["uid"] == "u"


@settings(max_examples=2 * settings().max_examples)
@given(st.sampled_from(KINDS), st.sampled_from(["CREATE", "UPDATE"]), WORKLOAD, THING)
def test_objects_of_any_shape(kind: str, operation: str, data: Any, old: Any) -> None:
    if isinstance(data, dict) and isinstance(data.get("metadata"), dict):
        data = data | {"metadata": data["metadata"] | {"annotations": ASKS}}
    text = body(kind, operation, data, old)
    answer(decode_review(text))
    compare_outline(text)


def compare_outline(text: bytes) -> None:
    """What is left out of a pod changes no verdict."""
    strict = ValidationSettings(strict_gangs=True)
    assert validate(decode_outline(text), strict) == validate(decode_review(text), strict)


@settings(max_examples=4 * settings().max_examples)
@given(st.binary(max_size=64), st.integers(0, 400))
def test_bytes_of_any_kind(noise: bytes, place: int) -> None:
    good = body("Pod", "CREATE", {"metadata": {"labels": {"a": "b"}}}, None)
    for each in (noise, good[:place] + noise + good[place:], good[:place]):
        with contextlib.suppress(Malformed):
            answer(decode_review(each))
            compare_outline(each)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b"[" * 100_000, id="brackets alone"),
        pytest.param(b"", id="nothing"),
        pytest.param(b"null", id="null"),
        pytest.param(b'{"request":{"uid":"' + b"\xff" + b'"}}', id="no UTF-8"),
        pytest.param(b'{"request":{"uid":"u","object":' + b"9" * 10_000 + b"}}", id="a number of ten thousand digits"),
        pytest.param(
            b'{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview","request":{"uid":"u"}}', id="v1beta1"
        ),
        pytest.param(
            b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":""}}', id="no UID"
        ),
    ],
)
def test_what_is_no_review_is_malformed(text: bytes) -> None:
    for decode in (decode_review, decode_outline):
        with pytest.raises(Malformed):
            decode(text)


def test_an_object_with_deep_parts_is_reviewed_without_them() -> None:
    deep = b'{"f:a":' * 5_000 + b"1" + b"}" * 5_000
    pod = b'{"metadata":{"labels":{"workload.kubenexus.io/type":"x"},"managedFields":[{"fieldsV1":' + deep + b"}]}}"
    text = body("Pod", "CREATE", "HERE", None).replace(b'"HERE"', pod)
    compare_outline(text)
    found = validate(decode_review(text), ValidationSettings())
    assert found.message.startswith("label workload.kubenexus.io/type: must be one of")


def test_the_outline_of_a_pod_is_what_its_checks_read() -> None:
    meta = {"labels": {"a": "b"}, "ownerReferences": [{"controller": True}], "managedFields": [{}], "name": "p"}
    old = {"metadata": {"annotations": {"a": "b"}}, "spec": {"schedulingGroup": {"podGroupName": "g"}, "nodeName": "n"}}
    found = decode_outline(body("Pod", "UPDATE", {"metadata": meta}, old))
    assert found.object == {"metadata": {"labels": {"a": "b"}, "ownerReferences": [{"controller": True}]}}
    assert found.old_object == {
        "metadata": {"annotations": {"a": "b"}},
        "spec": {"schedulingGroup": {"podGroupName": "g"}},
    }
    job = {"metadata": {"name": "j"}, "spec": {"parallelism": 2}}
    assert decode_outline(body("Job", "CREATE", job, None)).object == job, "of other kinds everything is read"
