"""Events as kube-scheduler writes them, to the byte: names, notes, bodies, paths."""

import msgspec
import pytest

from kubenexus.client.calls import STRATEGIC_PATCH
from kubenexus.observe.events import (
    EventSource,
    Series,
    create_call,
    event_name,
    failed_scheduling,
    repeat_call,
    scheduled,
    truncate_note,
)
from kubenexus.testing.builders import a_pod

POD = a_pod("web-0", namespace="shop", uid="u-1")
NOW = 1_794_792_257.123456  # 2026-11-16
SOURCE = EventSource.on("host-a", "kubenexus-scheduler")


def test_a_scheduled_event_is_kube_schedulers() -> None:
    call = create_call(scheduled(POD, "n1"), SOURCE, "web-0.18", NOW)
    assert str(call) == "POST /apis/events.k8s.io/v1/namespaces/shop/events"
    assert call.content_type == "application/json"
    assert msgspec.json.decode(call.body) == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "web-0.18", "namespace": "shop"},
        "eventTime": "2026-11-16T01:24:17.123456Z",
        "reportingController": "kubenexus-scheduler",
        "reportingInstance": "kubenexus-scheduler-host-a",
        "action": "Binding",
        "reason": "Scheduled",
        "regarding": {"kind": "Pod", "namespace": "shop", "name": "web-0", "uid": "u-1", "apiVersion": "v1"},
        "note": "Successfully assigned shop/web-0 to n1",
        "type": "Normal",
    }


def test_a_refusal_carries_the_sentence() -> None:
    what = failed_scheduling(POD, "0/5 nodes are available: 5 Insufficient cpu.")
    assert (what.type, what.reason, what.action) == ("Warning", "FailedScheduling", "Scheduling")
    assert what.note == "0/5 nodes are available: 5 Insufficient cpu."


def test_a_repetition_patches_the_series_only() -> None:
    series = Series(count=2, last_observed_time="2026-11-16T01:24:17.123456Z")
    call = repeat_call(scheduled(POD, "n1"), "web-0.18", series)
    assert str(call) == "PATCH /apis/events.k8s.io/v1/namespaces/shop/events/web-0.18"
    assert call.content_type == STRATEGIC_PATCH
    assert call.body == b'{"series":{"count":2,"lastObservedTime":"2026-11-16T01:24:17.123456Z"}}'


@pytest.mark.parametrize(
    ("note", "expected"),
    [
        pytest.param("x" * 1024, "x" * 1024, id="a note of 1024 bytes stays whole"),
        pytest.param("x" * 1025, "x" * 1020 + " ...", id="a longer one is cut and says so"),
        pytest.param("ü" * 512, "ü" * 512, id="bytes count, not letters"),
        pytest.param("x" + "ü" * 512, "x" + "ü" * 509 + " ...", id="no letter is cut in two"),
    ],
)
def test_a_note_is_as_long_as_the_api_server_takes(note: str, expected: str) -> None:
    assert truncate_note(note) == expected
    assert len(truncate_note(note).encode()) <= 1024


def test_an_event_is_named_after_its_object_and_the_instant() -> None:
    assert event_name("web-0", 0x17F1C5E8A3B2D400) == "web-0.17f1c5e8a3b2d400"
    assert event_name("a" * 235 + "-" * 18, 0x17F1C5E8A3B2D400) == "a" * 235 + ".17f1c5e8a3b2d400"
    assert len(event_name("a" * 253, 0x17F1C5E8A3B2D400)) == 253
