"""The CPU Manager of a kubelet with the policy `static`: hints, and exclusive CPUs."""

from kubenexus.api.numa.machine import Kubelet, Machine, Usage, in_set, members, narrowest_sets, set_sums, union
from kubenexus.api.numa.merge import Hints
from kubenexus.api.numa.pod_demand import ContainerDemand
from kubenexus.api.numa.refusal import SMT, Refused
from kubenexus.api.numa.spread_cpus import take_spread
from kubenexus.api.numa.take_cpus import take_packed


class CpuManager:
    """One admission. `reusable` are the CPUs that init containers of the pod have left."""

    def __init__(self, kubelet: Kubelet, machine: Machine, usage: Usage) -> None:
        self.kubelet, self.machine, self.usage = kubelet, machine, usage
        self.reusable = 0

    def hints(self, number: int, *, preferred_only: bool = False) -> Hints:
        """Returns the NUMA nodes that have enough CPUs. What is preferred depends on all CPUs, reserved and used ones
        included: as few NUMA nodes as would do on an empty machine."""
        if not number:
            return None
        numa = self.machine.cpus.numa
        all_cpus = [cpus.bit_count() for cpus in numa]
        left = [(cpus & (self.usage.cpus | self.reusable)).bit_count() for cpus in numa]
        occupied = sum(1 << zone for zone, cpus in enumerate(numa) if cpus)
        must = sum(1 << zone for zone, cpus in enumerate(numa) if cpus & self.reusable)
        if preferred_only:
            sets = narrowest_sets([all_cpus], [number], occupied)
            return {each: True for each in sets if in_set(left, each) >= number and not must & ~each}
        total, free = set_sums(all_cpus), set_sums(left)
        sets = [zones for zones in range(1, 1 << len(numa)) if zones & ~occupied == 0]
        width = min((zones.bit_count() for zones in sets if total[zones] >= number), default=occupied.bit_count())
        return {zones: zones.bit_count() == width for zones in sets if free[zones] >= number and must & ~zones == 0}

    def allocate(self, container: ContainerDemand, affinity: int | None) -> int:
        """Returns the CPUs of a container, which then are taken. Raises Refused."""
        number = container.cpus
        if not number:
            return 0
        if self.kubelet.full_cores_only:
            self._check_whole_cores(number)
        free = self.usage.cpus | self.reusable
        taken = 0
        if affinity is not None:
            aligned = union(self.machine.cpus.numa[zone] for zone in members(affinity)) & free
            taken = self._take(aligned, min(number, aligned.bit_count()))
        taken |= self._take(free & ~taken, number - taken.bit_count())
        self.usage.cpus &= ~taken
        self.reusable = self.reusable | taken if container.leaves_for_reuse else self.reusable & ~taken
        return taken

    def _take(self, free: int, number: int) -> int:
        layout = self.machine.cpus
        if self.kubelet.spread_cpus:
            return take_spread(layout, free, number, layout.threads if self.kubelet.full_cores_only else 1)
        return take_packed(layout, free, number, align_caches=self.kubelet.align_caches)

    def _check_whole_cores(self, number: int) -> None:
        layout = self.machine.cpus
        if number % layout.threads:
            message = f"SMT Alignment Error: requested {number} cpus not multiple cpus per core = {layout.threads}"
            raise Refused(SMT, message)
        free = (self.usage.cpus & ~layout.whole_cores(self.machine.reserved)).bit_count()
        if number > free:
            raise Refused(
                SMT,
                f"SMT Alignment Error: not enough free physical CPUs: available physical CPUs = {free}, "
                f"requested CPUs = {number}, CPUs per core = {layout.threads}",
            )
