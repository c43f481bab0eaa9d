"""The page of all metrics, from the table that defines them."""

from collections.abc import Iterable

from docsite.tables import table
from kubenexus.observe.metric_definition import MetricDefinition
from kubenexus.observe.metric_table import OURS, UPSTREAM

HEAD = """# Metrics

On `/metrics` of the secured port. [running.md](../running.md#what-you-will-see) says which ones of kube-scheduler's are
missing, and [alerts.md](../alerts.md) what to do when one is not as it should be. No label names a pod or a gang.
Beyond the number of label sets in the last column all is counted under `other`.
[versioning.md](../versioning.md) says what STABLE, BETA and ALPHA promise.
"""


def page() -> str:
    return "\n".join([HEAD, "## As kube-scheduler has them\n", rows(UPSTREAM), "\n## Our own\n", rows(OURS)])


def rows(metrics: Iterable[MetricDefinition]) -> str:
    return table(("metric", "labels", "meaning", "stability", "label sets"), [row(each) for each in sorted(metrics)])


def row(metric: MetricDefinition) -> tuple[str, ...]:
    labels = ", ".join(f"`{label}`" for label in metric.labels)
    return f"`{metric.name}`", labels, meaning(metric), metric.stability, most(metric)


def meaning(metric: MetricDefinition) -> str:
    text, buckets = metric.help.replace("<", "&lt;"), metric.buckets
    if not buckets:
        return text
    return f"{text.rstrip('.')}. Histogram of {len(buckets)} buckets, {buckets[0]:g} to {buckets[-1]:g}"


def most(metric: MetricDefinition) -> str:
    return f"{metric.series:,}" if metric.labels else "1"
