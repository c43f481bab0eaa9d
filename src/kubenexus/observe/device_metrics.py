"""The metrics of devices, from the results of decisions (`plan.device_outcomes`). No label is a name."""

from collections.abc import Callable
from typing import Final

from kubenexus.observe.meters import Counter, Histogram
from kubenexus.plan.device_outcomes import (
    INSUFFICIENT_VRAM,
    NO_GPU_INFO,
    NOT_JOINED,
    RESERVED_TIER,
    DeviceOutcome,
    DeviceResults,
)
from kubenexus.plugins.devices.fragmentation import MAX_BREAKING
from kubenexus.state.devices.layout import QUALITY

GOOD_FIT, ACCEPTABLE_FIT = 70, 40  # percent of a card's memory
UNKNOWN: Final = "unknown"  # the kind of work where the profile does not classify pods
_SIZES: Final = (1, 2, 4, 8)
_QUALITY: Final = {str(link): str(percent) for link, percent in QUALITY.items()}


class DeviceMetrics:
    """Attributes have the names of the metrics, without `kubenexus_` and units."""

    def __init__(self, counter: Callable[[str], Counter], histogram: Callable[[str], Histogram]) -> None:
        self.allocations = counter("kubenexus_gpu_allocation_success_total")
        self.failures = counter("kubenexus_gpu_allocation_failures_total")
        self.source_usage = counter("kubenexus_gpu_data_source_usage_total")
        self.vram_decisions = counter("kubenexus_vram_placement_decisions_total")
        self.vram_requested = histogram("kubenexus_vram_requested_bytes")
        self.topology_decisions = counter("kubenexus_topology_decisions_total")
        self.topology_quality = histogram("kubenexus_topology_quality_score")
        self.fragmentation = histogram("kubenexus_fragmentation_score")
        self.island_protection = counter("kubenexus_island_protection_events_total")
        self.perfect_fits = counter("kubenexus_perfect_fit_placements_total")
        self.island_completions = counter("kubenexus_island_completions_total")

    def placed(self, results: DeviceResults) -> None:
        """Records the pods of a decision that was committed."""
        workload = results.workload or UNKNOWN
        for outcome, pods in results.outcomes:
            self._topology(outcome, pods, workload)
            self._memory(outcome, pods, workload)
            self._island(outcome, pods, whole_islands=results.whole_islands)
            for source in outcome.sources:
                self.source_usage.labels(source).add(pods)

    def refused(self, reason: str, workload: str = "") -> None:
        """Records a refusal, by the result of `device_refusal`; "" is a refusal for other reasons. `workload` is the
        kind of work of the job."""
        if not reason:
            return
        self.failures.labels(reason, workload or UNKNOWN).add()
        if reason == NOT_JOINED:
            self.topology_decisions.labels("NVLink", "false", "required").add()
        elif reason in (INSUFFICIENT_VRAM, NO_GPU_INFO):
            self.vram_decisions.labels(reason, workload or UNKNOWN, "").add()
        elif reason == RESERVED_TIER:
            self.island_protection.labels("tenant_mismatch", "true").add()

    def _topology(self, outcome: DeviceOutcome, pods: int, workload: str) -> None:
        aware = outcome.level not in ("", "none")
        self.allocations.labels(workload, _bucket(outcome.number), str(aware).lower()).add(pods)
        if outcome.level:
            wanted = "required" if outcome.link_required else "multi_gpu"
            self.topology_decisions.labels(outcome.level, str(aware).lower(), wanted).add(pods)
            self.topology_quality.labels(outcome.level).observe(outcome.closeness, pods)

    def _memory(self, outcome: DeviceOutcome, pods: int, workload: str) -> None:
        if not outcome.memory:
            self.vram_decisions.labels("no_vram_request", workload, outcome.memory_source).add(pods)
            return
        percent = 100 * outcome.memory // max(outcome.card_memory, 1)
        fit = "good_fit" if percent >= GOOD_FIT else "acceptable_fit" if percent >= ACCEPTABLE_FIT else "poor_fit"
        self.vram_decisions.labels(fit, workload, outcome.memory_source).add(pods)
        self.vram_requested.labels(workload).observe(outcome.memory, pods)

    def _island(self, outcome: DeviceOutcome, pods: int, *, whole_islands: bool) -> None:
        if not outcome.is_part:
            self.fragmentation.labels("gpu").observe(outcome.score, pods)
        if outcome.breaks:
            self.island_protection.labels("pristine_island", "false").add(pods)
        elif whole_islands and outcome.number <= MAX_BREAKING:
            self.island_protection.labels("pristine_island", "true").add(pods)
        if outcome.fills:
            self.perfect_fits.labels(_bucket(outcome.island), outcome.link or "none").add(pods)
            if not outcome.was_whole:
                self.island_completions.labels(_bucket(outcome.island), _QUALITY.get(outcome.link, "0")).add(pods)


def _bucket(number: int) -> str:
    """Returns the number rounded up to 1, 2, 4, 8, or `16+`."""
    return next((str(size) for size in _SIZES if number <= size), "16+")
