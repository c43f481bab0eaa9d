"""Counters, gauges and histograms that cost a fraction of a microsecond: a number in a list, written by one thread.

prometheus_client's own take locks and cost ten times as much. We keep its formats and hand it the samples at each
scrape. The labels of a family are a fixed, short list, and never a pod. Beyond a number of sets of values everything is
counted under `other`, so that users cannot make the process grow by choosing names.

Hot paths keep the child that `labels` returns and do not look it up each time.
"""

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import Final, Generic, TypeVar

from prometheus_client.core import Metric

from kubenexus.observe.metric_definition import MetricDefinition

OTHER: Final = "other"


class MetricValue:
    """The value of a counter or a gauge."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0

    def add(self, amount: float = 1) -> None:
        self.value += amount

    def set(self, value: float) -> None:
        """For gauges only: Prometheus takes a counter that decreases for a restart."""
        self.value = value


class HistogramBuckets:
    """One histogram: how many values fell into each bucket, and their sum."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float, times: int = 1) -> None:
        """Records a value `times` times: the pods of a job are decided together."""
        self.counts[bisect_left(self.bounds, value)] += times
        self.sum += value * times


Child = TypeVar("Child", MetricValue, HistogramBuckets)


class MetricFamily(ABC, Generic[Child]):
    """One metric, with a child for each set of label values."""

    kind = ""

    def __init__(self, row: MetricDefinition) -> None:
        self.row = row
        self._children: dict[tuple[str, ...], Child] = {}
        if not row.labels:  # shown from the start; children with labels appear with their first value
            self.labels()

    def labels(self, *values: str) -> Child:
        """Returns the child for these label values, which are in the order of the table."""
        child = self._children.get(values)
        return self._open(values) if child is None else child

    def collect(self, *, canonical: bool = True) -> Metric:
        """Returns the samples for prometheus_client. May run in another thread: it copies the children in one step.

        The bound 1 of a bucket is `1.0` in OpenMetrics (`canonical`) and `1` in the older text, as Go writes it.
        """
        metric = Metric(self.row.name.removesuffix("_total"), self.row.text, self.kind)
        for values, child in list(self._children.items()):
            self._samples(metric, dict(zip(self.row.labels, values, strict=True)), child, canonical)
        return metric

    def _open(self, values: tuple[str, ...]) -> Child:
        if len(values) != len(self.row.labels):
            raise ValueError(f"{self.row.name} has the labels {', '.join(self.row.labels)}; got {values}")
        if len(self._children) >= self.row.series:
            values = (OTHER,) * len(values)
        return self._children.setdefault(values, self._new())

    @abstractmethod
    def _new(self) -> Child:
        """Returns a child that has counted nothing yet."""

    @abstractmethod
    def _samples(self, metric: Metric, labels: dict[str, str], child: Child, canonical: bool) -> None:
        """Adds the child's samples to the metric."""


class Counter(MetricFamily[MetricValue]):
    kind = "counter"

    def _new(self) -> MetricValue:
        return MetricValue()

    def _samples(self, metric: Metric, labels: dict[str, str], child: MetricValue, canonical: bool) -> None:
        metric.add_sample(self.row.name, labels, child.value)


class Gauge(Counter):
    kind = "gauge"

    def replace(self, values: Mapping[tuple[str, ...], float]) -> None:
        """Sets all values at once. Label values that are not in `values` are no longer shown."""
        self._children = {}
        for labels, value in values.items():
            self.labels(*labels).add(value)


class Histogram(MetricFamily[HistogramBuckets]):
    kind = "histogram"

    def _new(self) -> HistogramBuckets:
        return HistogramBuckets(self.row.buckets)

    def _samples(self, metric: Metric, labels: dict[str, str], child: HistogramBuckets, canonical: bool) -> None:
        counts, total = list(child.counts), child.sum
        for bound, count in self._cumulative(counts):
            le = bound if canonical else bound.removesuffix(".0")
            metric.add_sample(f"{self.row.name}_bucket", labels | {"le": le}, count)
        metric.add_sample(f"{self.row.name}_count", labels, sum(counts))
        metric.add_sample(f"{self.row.name}_sum", labels, total)

    def _cumulative(self, counts: list[int]) -> Iterator[tuple[str, int]]:
        return zip((*map(repr, map(float, self.row.buckets)), "+Inf"), accumulate(counts), strict=True)
