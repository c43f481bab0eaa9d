"""The metrics of NUMA nodes, from the results of decisions (`plan.numa_outcomes`). No label is a name."""

from collections.abc import Callable, Iterable

from kubenexus.observe.device_metrics import UNKNOWN
from kubenexus.observe.meters import Counter, Histogram
from kubenexus.plan.numa_outcomes import NumaOutcome


class NumaMetrics:
    """Attributes have the names of the metrics, without `kubenexus_numa_` and units."""

    def __init__(self, counter: Callable[[str], Counter], histogram: Callable[[str], Histogram]) -> None:
        self.placement_decisions = counter("kubenexus_numa_placement_decisions_total")
        self.fit_quality = histogram("kubenexus_numa_fit_quality_score")
        self.false_accepts = counter("kubenexus_numa_false_accepts_total")

    def placed(self, outcomes: Iterable[NumaOutcome], workload: str) -> None:
        """Records the pods of a decision that was committed."""
        for outcome in outcomes:
            self.placement_decisions.labels(outcome.policy, outcome.outcome, workload or UNKNOWN).add()
            if outcome.score is not None:
                self.fit_quality.labels(outcome.policy).observe(outcome.score)
