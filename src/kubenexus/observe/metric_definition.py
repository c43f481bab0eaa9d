"""A metric as a row of a table: its name, labels, buckets and help text."""

from typing import Final, NamedTuple

STABLE: Final = "STABLE"
BETA: Final = "BETA"
ALPHA: Final = "ALPHA"
MAX_SERIES: Final = 512
QUEUE_SERIES: Final = 4096  # 256 queues, each with 16 resources
TENANT_SERIES: Final = 4096  # 256 tenants, each with pods of several tiers on several sorts of nodes


def exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    """Returns bounds as Go's client computes them, by repeated multiplication: the digits must be the same."""
    bounds = [start]
    for _ in range(count - 1):
        bounds.append(bounds[-1] * factor)
    return tuple(bounds)


class MetricDefinition(NamedTuple):
    """A row of the table. `buckets` is set for histograms only. Beyond `series` sets of label values everything is
    counted under `other`."""

    name: str
    stability: str
    labels: tuple[str, ...]
    help: str
    buckets: tuple[float, ...] = ()
    series: int = MAX_SERIES

    @property
    def text(self) -> str:
        """The help text after the stability, as Kubernetes' components write it."""
        return f"[{self.stability}] {self.help}"
