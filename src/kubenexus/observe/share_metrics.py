"""The metrics of queues. Names of queues are labels here, so their number is bounded."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from kubenexus.observe.meters import Gauge

MAX_QUEUES: Final = 256  # with metrics, the first ones by use; all others have none
MAX_RESOURCES: Final = 16  # of one queue


class QueueUse(NamedTuple):
    """What a queue uses now. Amounts are by resource, cpu in thousandths; `limit` has only those with a limit."""

    queue: str
    share: float
    waiting: int
    used: Mapping[str, int]
    guaranteed: Mapping[str, int]
    limit: Mapping[str, int]


class ShareMetrics:
    """Attributes have the names of the metrics, without `kubenexus_queue_`."""

    def __init__(self, gauge: Callable[[str], Gauge]) -> None:
        self.used, self.guaranteed = gauge("kubenexus_queue_used"), gauge("kubenexus_queue_guaranteed")
        self.limit, self.borrowed = gauge("kubenexus_queue_limit"), gauge("kubenexus_queue_borrowed")
        self.share, self.waiting = gauge("kubenexus_queue_share"), gauge("kubenexus_queue_waiting_jobs")

    def record(self, uses: Iterable[QueueUse]) -> None:
        """Replaces all values."""
        shown = sorted(uses, key=lambda use: (-use.share, -use.waiting, use.queue))[:MAX_QUEUES]
        self.share.replace({(use.queue,): use.share for use in shown})
        self.waiting.replace({(use.queue,): float(use.waiting) for use in shown})
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


def _borrowed(use: QueueUse) -> dict[str, int]:
    more = {name: amount - use.guaranteed.get(name, 0) for name, amount in use.used.items()}
    return {name: amount for name, amount in more.items() if amount > 0}
