"""Pods of ordinary charts are services, and unrelated labels change the kind of no pod."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.api import keys
from kubenexus.api.classification.workload import WorkloadType, classify
from kubenexus.api.core import Pod
from tests.api.classification.operator_pods import OPERATOR_PODS
from tests.api.classification.ordinary_pods import ORDINARY, ordinary_pod

KNOWN = frozenset(key for section in keys.SECTIONS for entry in section.entries for key in entry.keys)
PODS = [*(each.pod for each in OPERATOR_PODS), *(ordinary_pod(line) for line in ORDINARY[::10])]
# Keys of other projects, and keys that resemble ours.
KEYS = st.one_of(
    st.text("abcdefghijklmnop./-", min_size=1, max_size=30),
    st.sampled_from(
        [
            "app", "component", "team", "workload", "type", "role", "job", "name", "notebook", "tier",
            "example.com/job-name", "serving.knative.dev/service", "kubeflow.org/notebook", "ray.io/group",
            "workload.kubenexus.io/types", "spark", "pod-template-hash", "statefulset.kubernetes.io/pod-name",
        ]
    ),
).filter(lambda key: key not in KNOWN)  # fmt: skip
VALUES = st.sampled_from(["", "true", "jupyter", "notebook", "training", "batch", "inference", "predictor", "worker"])


def test_there_are_two_hundred_different_ones() -> None:
    assert len(ORDINARY) == len(set(ORDINARY)) >= 200


@pytest.mark.parametrize("line", [pytest.param(line, id=" ".join(line.split()[2:4])) for line in ORDINARY])
def test_an_ordinary_pod_is_a_service(line: str) -> None:
    found = classify(ordinary_pod(line))
    assert (found.type, found.reason, found.gang) == (WorkloadType.SERVICE, "no mark of another kind", False)


@given(st.sampled_from(PODS), st.dictionaries(KEYS, VALUES, max_size=8), st.booleans())
def test_unrelated_labels_and_annotations_change_nothing(pod: Pod, more: dict[str, str], notes: bool) -> None:
    meta = pod.metadata
    changed = {"annotations": meta.annotations | more} if notes else {"labels": meta.labels | more}
    again = msgspec.structs.replace(pod, metadata=msgspec.structs.replace(meta, **changed))
    assert classify(again) == classify(pod)
