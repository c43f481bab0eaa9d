"""Counters, gauges and histograms that cost a fraction of a microsecond: a number in a list, written by one thread.

prometheus_client has its own, with locks, for ten times the price. We keep its formats and only hand it the samples
when somebody asks. A family's labels are closed and few, and never a pod: beyond `LIMIT` sets of values everything
goes under `other`, so that nobody can make the process grow by naming things.

Hot paths keep the child that `at` returns and do not look it up each time.
"""

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import Final, Generic, TypeVar

from prometheus_client.core import Metric

from kubenexus.observe.metric_table import MetricDefinition

LIMIT: Final = 512
OTHER: Final = "other"


class MetricValue:
    """A counter or a gauge."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0

    def add(self, amount: float = 1) -> None:
        self.value += amount

    def set(self, value: float) -> None:
        """Gauges only: a counter that goes back is taken for a restart."""
        self.value = value


class HistogramBuckets:
    """One histogram: how many values fell into each bucket, and their sum."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float, times: int = 1) -> None:
        """`times` values at once: the pods of a job that were decided together."""
        self.counts[bisect_left(self.bounds, value)] += times
        self.sum += value * times


Child = TypeVar("Child", MetricValue, HistogramBuckets)


class MetricFamily(ABC, Generic[Child]):
    """All sets of label values of one metric."""

    kind = ""

    def __init__(self, row: MetricDefinition) -> None:
        self.row = row
        self._children: dict[tuple[str, ...], Child] = {}
        if not row.labels:  # shown from the start; the others once there is something to show
            self.labels()

    def labels(self, *values: str) -> Child:
        """The child for these values of the labels, in the order of the table."""
        child = self._children.get(values)
        return self._open(values) if child is None else child

    def collect(self, *, canonical: bool = True) -> Metric:
        """For prometheus_client. May run in another thread: it copies what it walks over in one step.

        A whole number as the bound of a bucket is `1.0` in OpenMetrics and `1` in the older text, as Go writes it.
        """
        metric = Metric(self.row.name.removesuffix("_total"), self.row.text, self.kind)
        for values, child in list(self._children.items()):
            self._samples(metric, dict(zip(self.row.labels, values, strict=True)), child, canonical)
        return metric

    def _open(self, values: tuple[str, ...]) -> Child:
        if len(values) != len(self.row.labels):
            raise ValueError(f"{self.row.name} has the labels {', '.join(self.row.labels)}; got {values}")
        if len(self._children) >= LIMIT:
            values = (OTHER,) * len(values)
        return self._children.setdefault(values, self._new())

    @abstractmethod
    def _new(self) -> Child:
        """A child that has counted nothing yet."""

    @abstractmethod
    def _samples(self, metric: Metric, labels: dict[str, str], child: Child, canonical: bool) -> None:
        """Adds the child's lines to the metric."""


class Counter(MetricFamily[MetricValue]):
    kind = "counter"

    def _new(self) -> MetricValue:
        return MetricValue()

    def _samples(self, metric: Metric, labels: dict[str, str], child: MetricValue, canonical: bool) -> None:
        metric.add_sample(self.row.name, labels, child.value)


class Gauge(Counter):
    kind = "gauge"

    def replace(self, values: Mapping[tuple[str, ...], float]) -> None:
        """These are all there are now: what is not named is no longer shown."""
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
