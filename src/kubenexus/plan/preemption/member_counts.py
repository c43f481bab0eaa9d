"""How many members of a gang each node takes by amounts of resources, now and without victims. Counting only: a gang
that does not fit by these numbers does not fit, and one that does is planned exactly."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from kubenexus.framework.job import Job
from kubenexus.plan.gang.member_classes import MemberClass, member_amounts
from kubenexus.plan.preemption.free_amounts import FreeAmounts, vector
from kubenexus.plan.preemption.victim_pool import VictimPool
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.pods import PodRecord
from kubenexus.state.topology import TopologyDomains


class MemberCounts:
    """The numbers for one gang. `possible` has for each class the rows that no lasting reason excludes, and `domains`
    is the level of which all members must share a domain. `apart`: no two members may be on one node."""

    def __init__(
        self,
        job: Job,
        member_classes: Sequence[MemberClass],
        columns: NodeColumns,
        pool: VictimPool,
        *,
        possible: list[Any],
        domains: TopologyDomains,
        promised: dict[int, list[PodRecord]],
        apart: bool = False,
    ) -> None:
        self.minimum, self.domains = job.minimum, domains
        demands = [member_amounts(each, columns) for each in member_classes]
        names = dict.fromkeys(name for demand in demands for name in demand)
        self.free = FreeAmounts(names, columns, pool, promised)
        self.needs = [vector(demand, self.free.names) for demand in demands]
        self.sizes = [each.size for each in member_classes]
        self.per_row = [1 if apart else size for size in self.sizes]
        self._possible = [mask & (domains.codes > 0) for mask in possible]

    def by_row(self, free: Any) -> list[Any]:
        """Returns for each class how many members each row takes, if no other class is placed."""
        found = []
        for need, size, possible in zip(self.needs, self.per_row, self._possible, strict=True):
            asked = need[:, 0] > 0
            times = np.floor(free[asked] / need[asked]).min(axis=0) if asked.any() else np.full(free.shape[1], size)
            found.append(np.where(possible, np.clip(times, 0, size), 0))
        return found

    def by_domain(self, free: Any) -> Any:
        """Returns for each domain an upper bound of the members that it takes."""
        total: Any = np.zeros(self.domains.size)
        for size, members in zip(self.sizes, self.by_row(free), strict=True):
            held = np.bincount(self.domains.codes, weights=members, minlength=self.domains.size)
            total += np.minimum(held, size)
        total[0] = 0
        return total

    def suffices(self, free: Any) -> bool:
        """Whether some domain may take the gang."""
        return bool(self.by_domain(free).max(initial=0) >= self.minimum)
