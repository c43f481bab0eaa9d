"""The metrics of NUMA nodes, from the results of decisions (`plan.numa_outcomes`). No label is a name."""

from collections.abc import Callable, Iterable

from kubenexus.observe.device_metrics import UNKNOWN
from kubenexus.observe.meters import Counter, Gauge, Histogram
from kubenexus.plan.numa_outcomes import GangShare, NumaOutcome
from kubenexus.state.numa.columns import NumaColumns
from kubenexus.state.numa.memory_use import shares_by_use


class NumaMetrics:
    """Attributes have the names of the metrics, without `kubenexus_numa_` and units."""

    def __init__(
        self,
        counter: Callable[[str], Counter],
        histogram: Callable[[str], Histogram],
        gauge: Callable[[str], Gauge],
    ) -> None:
        self.placement_decisions = counter("kubenexus_numa_placement_decisions_total")
        self.fit_quality = histogram("kubenexus_numa_fit_quality_score")
        self.false_accepts = counter("kubenexus_numa_false_accepts_total")
        self.distance_penalty = counter("kubenexus_numa_distance_penalty_total")
        self.gang_affinity_success = counter("kubenexus_numa_gang_affinity_success_total")
        self.memory_bandwidth_pressure = gauge("kubenexus_numa_memory_bandwidth_pressure_percent")

    def placed(self, outcomes: Iterable[NumaOutcome], shares: Iterable[GangShare], workload: str) -> None:
        """Records the pods of a decision that was committed."""
        for outcome in outcomes:
            self.placement_decisions.labels(outcome.policy, outcome.outcome, workload or UNKNOWN).add()
            if outcome.score is not None:
                self.fit_quality.labels(outcome.policy).observe(outcome.score)
            if outcome.distance:
                self.distance_penalty.labels(outcome.distance).add()
        for share in shares:
            self.gang_affinity_success.labels(share.policy, str(share.numa)).add(share.members)

    def read(self, numa: NumaColumns) -> None:
        """Sets the gauge, when the metrics are read."""
        self.memory_bandwidth_pressure.replace({(level,): share for level, share in shares_by_use(numa).items()})
