"""An estimate of how long a pod runs, with what it is based on."""

import math
from typing import Final, NamedTuple

from kubenexus.api.runtimes import DeclaredRuntime, WorkloadIdentity

_UNITS: Final = ((86_400, "d"), (3600, "h"), (60, "m"), (1, "s"))
NOT_OUTLIVED: Final = 1.05  # times its declared runtime that a run may take without being called longer


class RuntimeEstimate(NamedTuple):
    """Seconds: a run of ten is shorter than `low`, every second one than `median`, nine of ten than `high`. Decisions
    use `high`. `runs` is the number of earlier runs that it is based on; `factor` how many times as long as declared
    they took."""

    low: float
    median: float
    high: float
    identity: WorkloadIdentity
    runs: int = 0
    declared: DeclaredRuntime | None = None
    factor: float = 1.0

    def basis(self) -> str:
        """Returns what the estimate is based on, for users of the pod's namespace."""
        if self.declared is None:
            return f"9 of 10 of {self.runs} runs of {self.identity} took at most {span(self.high)}"
        text = f"{self.declared.source} is {span(self.declared.seconds)}"
        if self.factor <= NOT_OUTLIVED or self.high <= self.declared.seconds:
            return text
        return f"{text}, but earlier runs took up to {self.factor:.3g} times as long as declared"

    def general_basis(self) -> str:
        """Returns the same for all users: it names no object."""
        return "a declared runtime" if self.declared is not None else f"{self.runs} earlier runs"


def span(seconds: float) -> str:
    """Returns `2h30m` for 9000: the two largest units."""
    if not math.isfinite(seconds):
        return "unknown"
    left, parts = max(round(seconds), 0), list[str]()
    for size, unit in _UNITS:
        number, left = divmod(left, size)
        if number or parts:
            parts.append(f"{number}{unit}" if number else "")
        if len(parts) == 2:
            break
    return "".join(parts) or "0s"
