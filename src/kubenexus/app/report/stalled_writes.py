"""Log lines about writes of a namespace that do not go through."""

from collections.abc import Callable

from kubenexus.base.clock import Clock
from kubenexus.observe import logs
from kubenexus.observe.log_throttle import LogThrottle

log = logs.get("scheduler")


def stalled_writes(clock: Clock, writes: str) -> Callable[[str, int], None]:
    """Returns a function that logs, once a minute for each namespace, that these writes do not go through."""
    lines = LogThrottle(clock)

    def stalled(namespace: str, waiting: int) -> None:
        if lines.left_out(namespace) is not None:
            text = "Writes of a namespace do not go through; an admission webhook may hold them"
            log.warning(text, writes=writes, namespace=namespace, waiting=waiting)

    return stalled
