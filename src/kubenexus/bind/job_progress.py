"""`JobProgress`: how far the binds of one job have come, and whether sending the rest is of any use."""

from collections.abc import Callable
from typing import NamedTuple

from kubenexus.bind.bind_result import BindResult, BindStatus
from kubenexus.bind.job_binding import JobBinding, PodBinding


class SendChecks(NamedTuple):
    """Callbacks of the dispatcher. `still_wanted` runs right before a bind is sent, and returns why the bind is no
    longer wanted (the pod or its node is gone), or "". `needs` returns how many binds of a job have to be sent for any
    of them to be of use. `problem` is called with unexpected errors, and with what was being done. `delay`: seconds
    for which the client's rate limit holds back a call that is sent now. `wake` is called when decisions may go on."""

    still_wanted: Callable[[PodBinding], str]
    needs: Callable[[JobBinding], int]
    problem: Callable[[str, Exception], None]
    delay: Callable[[], float]
    wake: Callable[[], None]


LOOKS = 8  # checks of all members of a job; later ones count failures alone, or 10,000 that fail cost 10^8 checks


class JobProgress:
    """The state of one job's binds. A bind is under way from when it is sent until it is known that the pod does not
    have the node. While any is under way the job cannot be given up whole. `stopped` is why it was given up."""

    def __init__(self, job_binding: JobBinding) -> None:
        self._job_binding = job_binding
        self._sent: set[str] = set()  # UIDs
        self._failed: dict[str, str] = {}  # messages by UID
        self._looks = self._least = 0
        self.stopped = ""

    @property
    def under_way(self) -> bool:
        """Whether any bind of the job is in flight, or done."""
        return bool(self._sent)

    def sent(self, pod_binding: PodBinding) -> None:
        self._sent.add(pod_binding.uid)

    def ended(self, pod_binding: PodBinding, result: BindResult) -> None:
        if result.status is not BindStatus.BOUND:
            self._sent.discard(pod_binding.uid)
            self._failed[pod_binding.uid] = result.message or result.status.value

    def short(self, checks: SendChecks) -> str:
        """Why so few members can be bound that none should be; "" if enough can.

        Called before each bind while none is under way. What the job needs is counted in the first `LOOKS` calls, then
        whenever the number of calls has doubled: the count takes time in proportion to the gang."""
        self._looks += 1
        if self._looks <= LOOKS or self._looks & (self._looks - 1) == 0:
            self._least = checks.needs(self._job_binding)
        pod_bindings, least = self._job_binding.pod_bindings, self._least
        lost, why = self._lost(checks)
        left = len(pod_bindings) - lost
        if left >= max(1, least):
            return ""
        if len(pod_bindings) == 1 and lost:
            return why
        return f"{left} of at least {least} members can still be bound: {why or 'others of it are gone'}"

    def _lost(self, checks: SendChecks) -> tuple[int, str]:
        """How many members cannot be bound, and why the first of them cannot."""
        if self._looks > LOOKS:
            return len(self._failed), next(iter(self._failed.values()), "")
        reasons = (self._failed.get(each.uid) or checks.still_wanted(each) for each in self._job_binding.pod_bindings)
        whys = [why for why in reasons if why]
        return len(whys), whys[0] if whys else ""
