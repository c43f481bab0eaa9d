"""The metrics of queues. Names of queues are labels here, so their number is bounded."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from kubenexus.observe.meters import Counter, Gauge

MAX_QUEUES: Final = 256  # with metrics, the first ones by use; all others have none
MAX_RESOURCES: Final = 16  # of one queue


class QueueUse(NamedTuple):
    """What a queue uses now. Amounts are by resource, cpu in thousandths; `limit` has only those with a limit.
    `position`: its place among its siblings with waiting jobs, 0 without such a job. `past`: its share in the past."""

    queue: str
    share: float
    waiting: int
    used: Mapping[str, int]
    guaranteed: Mapping[str, int]
    limit: Mapping[str, int]
    position: int = 0
    past: float = 0.0


class ShareMetrics:
    """Attributes have the names of the metrics, without `kubenexus_queue_`."""

    def __init__(self, gauge: Callable[[str], Gauge], counter: Callable[[str], Counter]) -> None:
        self.reclaimed_pods = counter("kubenexus_queue_reclaimed_pods_total")
        self.position, self.past_share = gauge("kubenexus_queue_position"), gauge("kubenexus_queue_past_share")
        self.used, self.guaranteed = gauge("kubenexus_queue_used"), gauge("kubenexus_queue_guaranteed")
        self.limit, self.borrowed = gauge("kubenexus_queue_limit"), gauge("kubenexus_queue_borrowed")
        self.share, self.waiting = gauge("kubenexus_queue_share"), gauge("kubenexus_queue_waiting_jobs")

    def record(self, uses: Iterable[QueueUse]) -> None:
        """Replaces all values."""
        shown = sorted(uses, key=lambda use: (-use.share, -use.waiting, use.queue))[:MAX_QUEUES]
        self.share.replace({(use.queue,): use.share for use in shown})
        self.waiting.replace({(use.queue,): float(use.waiting) for use in shown})
        self.position.replace({(use.queue,): float(use.position) for use in shown if use.position})
        self.past_share.replace({(use.queue,): use.past for use in shown if use.past})
        for gauge, amounts in (
            (self.used, [use.used for use in shown]),
            (self.guaranteed, [use.guaranteed for use in shown]),
            (self.limit, [use.limit for use in shown]),
            (self.borrowed, [_borrowed(use) for use in shown]),
        ):
            gauge.replace(
                {
                    (use.queue, name): amount / 1000 if name.partition("@")[0] == "cpu" else float(amount)
                    for use, each in zip(shown, amounts, strict=True)
                    for name, amount in sorted(each.items())[:MAX_RESOURCES]
                }
            )

    def taken_back(self, queues: Iterable[str]) -> None:
        """Counts victims that go because their queues borrow, by queue."""
        for queue in queues:
            self.reclaimed_pods.labels(queue).add()


def _borrowed(use: QueueUse) -> dict[str, int]:
    more = {name: amount - use.guaranteed.get(name, 0) for name, amount in use.used.items()}
    return {name: amount for name, amount in more.items() if amount > 0}
