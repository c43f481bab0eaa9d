"""kube-scheduler's dashboards work on ours: names, labels, buckets and help texts are its own."""

import asyncio
from pathlib import Path
from typing import NamedTuple

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kubenexus.observe.meters import Counter, Gauge, Histogram, MetricFamily
from kubenexus.observe.metric_definition import MAX_SERIES, MetricDefinition, exponential
from kubenexus.observe.metric_table import OURS, TABLE, UPSTREAM
from kubenexus.observe.metrics import Metrics
from kubenexus.observe.use_metric_table import DEVICES, TENANTS
from kubenexus.queue.backoff_policy import BackoffPolicy
from tests.queue.queue_fixture import QueueFixture

# Of kube-scheduler's stable and beta ones, those that nothing here would ever write; docs/running.md names them.
NOT_HERE = {
    "scheduler_permit_wait_duration_seconds",
    "scheduler_framework_extension_point_duration_seconds",
    "scheduler_plugin_execution_duration_seconds",
    "scheduler_plugin_evaluation_total",
}
OPEN_METRICS = "application/openmetrics-text; version=1.0.0"


DOCS = Path(__file__).parents[2] / "docs"


class Declared(NamedTuple):
    kind: str
    stability: str
    labels: tuple[str, ...]
    buckets: tuple[float, ...]
    help: str


def upstream() -> dict[str, Declared]:
    found = {}
    for line in (Path(__file__).parent / "upstream_metrics.txt").read_text(encoding="utf-8").splitlines()[1:]:
        name, kind, stability, labels, buckets, text = line.split("|")
        start, factor, count = (0.0, 0.0, 0) if buckets == "-" else _numbers(buckets)
        bounds = tuple(start * factor**i for i in range(count))
        found[f"scheduler_{name}"] = Declared(kind, stability, tuple(labels.replace("-", "").split(",")), bounds, text)
    return found


def _numbers(text: str) -> tuple[float, float, int]:
    start, factor, count = text.split(",")
    return float(start), float(factor), int(count)


DECLARED = upstream()
OF_THE_SCHEDULER = [row for row in UPSTREAM if row.name.startswith("scheduler_")]


def text(metrics: Metrics, accept: str = "") -> str:
    body, _ = asyncio.run(metrics.text(accept))
    return body.decode()


@pytest.mark.parametrize("row", OF_THE_SCHEDULER, ids=lambda row: row.name)
def test_a_metric_of_kube_scheduler_is_as_it_declares_it(row: MetricDefinition) -> None:
    declared = DECLARED[row.name]
    assert (row.stability, row.labels or ("",), row.help) == (declared.stability, declared.labels, declared.help)
    assert row.buckets == pytest.approx(declared.buckets)
    (family,) = [each for each in Metrics().collect() if each.documentation == row.text]
    assert family.type == declared.kind


@pytest.mark.parametrize("stability", ["STABLE", "BETA"])
def test_none_that_is_stable_is_missing(stability: str) -> None:
    wanted = {name for name, declared in DECLARED.items() if declared.stability == stability}
    assert wanted - NOT_HERE <= {row.name for row in UPSTREAM}
    assert not NOT_HERE & {row.name for row in UPSTREAM}
    assert all(name in (DOCS / "running.md").read_text(encoding="utf-8") for name in wanted & NOT_HERE)


def test_every_row_of_the_table_is_shown_once() -> None:
    shown = [(family.name, family.documentation) for family in Metrics().collect()]
    assert sorted(shown) == sorted((row.name.removesuffix("_total"), row.text) for row in TABLE.values())


def test_no_label_is_a_pod_and_ours_have_our_name() -> None:
    labels = {label for row in TABLE.values() for label in row.labels}
    assert not labels & {"pod", "namespace", "node", "uid", "job"}
    assert all(row.name.startswith("kubenexus_") for row in OURS)


def test_the_page_on_devices_has_their_metrics_with_their_labels() -> None:
    page = (DOCS / "devices.md").read_text(encoding="utf-8")
    for row in DEVICES:
        assert f"| `{row.name}` " + (f"`{{{', '.join(row.labels)}}}` " if row.labels else "") + "|" in page


def test_the_page_on_costs_has_the_metrics_of_tenants_with_their_labels() -> None:
    page = (DOCS / "costs.md").read_text(encoding="utf-8")
    for row in TENANTS:
        assert f"| `{row.name}` `{{{', '.join(row.labels)}}}` |" in page


def test_an_attempt_reads_as_with_kube_scheduler() -> None:
    metrics = Metrics()
    metrics.attempt("scheduled", "default-scheduler", 0.003, pods=2)
    metrics.bound(attempts=1, seconds=0.02)
    metrics.bound(attempts=40, seconds=100.0)
    shown = text(metrics).splitlines()
    head = "# HELP scheduler_schedule_attempts_total [STABLE] Number of attempts to schedule pods, by the result."
    assert any(line.startswith(head) for line in shown)
    assert "# TYPE scheduler_schedule_attempts_total counter" in shown
    labels = 'profile="default-scheduler",result="scheduled"'
    assert f"scheduler_schedule_attempts_total{{{labels}}} 2.0" in shown
    bucket = 'scheduler_scheduling_attempt_duration_seconds_bucket{le="%s",' + labels + "} %s"
    assert [bucket % each in shown for each in (("0.002", "0.0"), ("0.004", "2.0"), ("+Inf", "2.0"))] == [True] * 3
    assert f"scheduler_scheduling_attempt_duration_seconds_sum{{{labels}}} 0.006" in shown
    assert 'scheduler_pod_scheduling_attempts_bucket{le="1"} 1.0' in shown
    assert 'scheduler_pod_scheduling_attempts_bucket{le="1.0"} 1.0' in text(metrics, OPEN_METRICS)
    assert 'scheduler_pod_scheduling_sli_duration_seconds_count{attempts="15+"} 1.0' in shown


def test_the_smallest_buckets_have_gos_digits() -> None:
    histogram = Histogram(MetricDefinition("x", "ALPHA", (), "x", exponential(0.00001, 1.5, 20)))
    histogram.labels().observe(1e-05)
    buckets = [sample for sample in histogram.collect(canonical=False).samples if sample.name == "x_bucket"]
    assert [each.labels["le"] for each in buckets[:3]] == ["1e-05", "1.5000000000000002e-05", "2.2500000000000005e-05"]
    assert buckets[0].value == 1  # a bound is part of its bucket
    assert exponential(1, 2, 5) == (1, 2, 4, 8, 16)


def test_what_is_shown_can_be_read_back() -> None:
    metrics = Metrics()
    metrics.attempt("error", "p", 1.0)
    names = {family.name for family in text_string_to_metric_families(text(metrics))}
    assert {"scheduler_schedule_attempts", "process_resident_memory_bytes", "kubenexus_build_info"} <= names


def test_open_metrics_is_spoken_when_asked_for() -> None:
    body, content_type = Metrics().render(OPEN_METRICS)
    assert content_type.startswith("application/openmetrics-text")
    assert body.endswith(b"# EOF\n")
    assert Metrics().render()[1].startswith("text/plain")


def test_the_queue_is_read_when_somebody_looks() -> None:
    fixture, metrics = QueueFixture(BackoffPolicy()), Metrics()
    metrics.add_source(lambda: metrics.read_queue(fixture.queue))
    fixture.add("p", kind="k")
    fixture.add("q", gates=["g"])
    text(metrics)
    shown = text(metrics).splitlines()
    assert 'scheduler_pending_pods{queue="active"} 1.0' in shown
    assert 'scheduler_pending_pods{queue="gated"} 1.0' in shown
    assert 'scheduler_pending_pods{queue="backoff"} 0.0' in shown
    assert 'scheduler_queue_incoming_pods_total{event="UnscheduledPodAdd",queue="active"} 1.0' in shown


def test_f62_label_values_are_bounded_whoever_names_them() -> None:
    counter = Counter(MetricDefinition("x_total", "ALPHA", ("name",), "x"))
    for i in range(MAX_SERIES + 100):
        counter.labels(f"n{i}").add()
    samples = {sample.labels["name"]: sample.value for sample in counter.collect().samples}
    assert len(samples) == MAX_SERIES + 1
    assert samples["other"] == 100


def test_a_gauge_that_is_replaced_forgets_what_is_gone() -> None:
    gauge = Gauge(MetricDefinition("x", "ALPHA", ("name",), "x"))
    gauge.replace({("a",): 1, ("b",): 2})
    gauge.replace({("b",): 3})
    assert [(s.labels, s.value) for s in gauge.collect().samples] == [({"name": "b"}, 3)]


def test_a_family_of_no_kind_cannot_be_made() -> None:
    with pytest.raises(TypeError, match="abstract method"):
        MetricFamily(MetricDefinition("x", "ALPHA", (), "x"))  # type: ignore[abstract]


def test_wrong_labels_are_a_bug_and_say_which() -> None:
    with pytest.raises(ValueError, match="x has the labels a, b; got"):
        Histogram(MetricDefinition("x", "ALPHA", ("a", "b"), "x", (1.0,))).labels("only one")
