"""What a pod declares about its runtime, whose runs it is compared with, and how long it ran."""

from typing import Any

import msgspec
import pytest

from kubenexus.api.core import Pod, PodCondition, PodStatus
from kubenexus.api.keys.values import DurationValue
from kubenexus.api.meta import OwnerReference
from kubenexus.api.runtimes import declared_runtime, name_stem, seconds_run, workload_identity
from kubenexus.base.errors import Malformed
from kubenexus.testing.builders import a_pod

KEY = "scheduling.kubenexus.io/max-runtime"
KUEUE = "kueue.x-k8s.io/max-exec-time-seconds"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("2h30m", 9000), ("1d", 86_400), (" 5m ", 300), ("1h5", 3605)],
)
def test_time_spans_are_read(text: str, seconds: int) -> None:
    assert DurationValue(most=10**7).parse(text) == seconds


@pytest.mark.parametrize("text", ["", "0", "-1", "1.5h", "h", "99999999d", "3m2h", "1e3", "٣m"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(Malformed):
        DurationValue(most=10**7).parse(text)


@pytest.mark.parametrize(
    ("labels", "annotations", "deadline", "seconds", "enforced"),
    [
        pytest.param({}, {}, None, None, False, id="nothing is declared"),
        pytest.param({}, {KEY: "10m"}, None, 600, False, id="our annotation"),
        pytest.param({KUEUE: "120"}, {}, None, 120, False, id="Kueue's label"),
        pytest.param({}, {KUEUE: "120"}, None, None, False, id="Kueue has no such annotation"),
        pytest.param({KUEUE: "120"}, {KEY: "10m"}, None, 600, False, id="our key goes first"),
        pytest.param({}, {KEY: "soon"}, None, None, False, id="what cannot be read is not declared"),
        pytest.param({}, {}, 60, 60, True, id="a deadline is enforced"),
        pytest.param({}, {KEY: "10m"}, 60, 60, True, id="the shorter counts: the deadline"),
        pytest.param({}, {KEY: "10s"}, 60, 10, False, id="the shorter counts: the annotation"),
        pytest.param({}, {}, 0, None, False, id="a deadline that no server accepts"),
    ],
)
def test_what_a_pod_declares(
    labels: dict[str, str], annotations: dict[str, str], deadline: int | None, seconds: float | None, enforced: bool
) -> None:
    pod = a_pod("p", labels=labels, annotations=annotations)
    pod = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, active_deadline_seconds=deadline))
    found = declared_runtime(pod)
    assert (None if found is None else found.seconds) == seconds
    assert found is None or found.enforced == enforced
    assert found is None or deadline is None or found.limit == deadline


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("nightly-28391234", "nightly"),
        ("train-x7k2p", "train"),
        ("train-x7k2p-0", "train"),
        ("data-loader", "data-loader"),
        ("sweep-1-2-3-4", "sweep-1"),
        ("28391234", "28391234"),
        ("-12345", "-12345"),
        ("", ""),
    ],
)
def test_numbers_and_generated_endings_are_no_part_of_an_identity(name: str, stem: str) -> None:
    assert name_stem(name) == stem


def test_an_identity_is_of_a_namespace_and_of_a_kind_of_owner() -> None:
    owner = OwnerReference(kind="Job", name="train-7", api_version="batch/v1", controller=True)
    pod = a_pod("train-7-abcde")
    owned = msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, owner_references=[owner]))
    assert str(workload_identity(owned)) == "Job default/train"
    assert str(workload_identity(pod)) == "Pod default/train-7-abcde"


def ended(**fields: Any) -> Pod:
    conditions = [
        PodCondition(type="Ready", status="False", reason="PodCompleted", last_transition_time="2026-01-01T00:10:00Z"),
        *fields.pop("more", ()),
    ]
    status = PodStatus(phase="Succeeded", start_time="2026-01-01T00:00:00Z", conditions=conditions)
    return msgspec.structs.replace(a_pod("p"), status=msgspec.structs.replace(status, **fields))


@pytest.mark.parametrize(
    ("pod", "seconds"),
    [
        pytest.param(ended(), 600.0, id="from its start until it is no longer ready"),
        pytest.param(ended(start_time=""), None, id="it never started"),
        pytest.param(ended(conditions=[]), None, id="it is not known when it ended"),
        pytest.param(ended(start_time="2026-01-02T00:00:00Z"), None, id="a clock was wrong"),
        pytest.param(ended(more=[PodCondition(type="DisruptionTarget", status="True")]), None, id="it was evicted"),
    ],
)
def test_how_long_a_pod_ran(pod: Pod, seconds: float | None) -> None:
    assert seconds_run(pod) == seconds
