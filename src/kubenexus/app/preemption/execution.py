"""`Execution`: a preemption with what its calls need."""

import msgspec

from kubenexus.api.core import Pod
from kubenexus.state.pods import PodRecord
from kubenexus.state.preemptions import PendingPreemption


class Execution(msgspec.Struct, frozen=True):
    """A preemption with what its calls need. `members` are the nominated pods, as they were, with their nodes.
    Victims that a budget protects come first, one by one: if it refuses, no other pod was evicted in vain. `violates`:
    the decision takes into account that budgets are violated, so these victims are deleted. `preemptor` is the unit of
    the job in the record of evictions."""

    pending: PendingPreemption
    members: tuple[tuple[Pod, str], ...]
    protected: tuple[PodRecord, ...] = ()
    others: tuple[PodRecord, ...] = ()
    evicts: bool = False
    violates: bool = False
    preemptor: str = ""

    @property
    def profile(self) -> str:
        return self.members[0][0].spec.scheduler_name

    def preemptor_on(self, node: str) -> Pod:
        """Returns a member that will get this node, else the first one."""
        return next((pod for pod, its in self.members if its == node), self.members[0][0])
