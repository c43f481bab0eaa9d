"""The Device Manager of a kubelet: hints, and devices of device plugins. It counts for every QoS class."""

from collections.abc import Sequence

from kubenexus.api.numa.machine import Device, Machine, Usage, each_bit, in_set, narrowest_sets, set_sums, union
from kubenexus.api.numa.merge import Hints
from kubenexus.api.numa.pod_demand import ContainerDemand
from kubenexus.api.numa.refusal import unexpected


class DeviceManager:
    """One admission. `reusable` are the devices that init containers of the pod have left, by resource."""

    def __init__(self, machine: Machine, usage: Usage) -> None:
        self.machine, self.usage = machine, usage
        self.reusable: dict[str, int] = {}

    def hints(self, wanted: Sequence[tuple[str, int]], *, reuse: bool, preferred_only: bool = False) -> list[Hints]:
        """Returns the NUMA nodes with enough devices, for each resource. A resource of which no device has a NUMA node
        does not care."""
        found = list[Hints]()
        for resource, number in wanted:
            devices = self.machine.devices.get(resource, ())
            if any(device.numa for device in devices):
                reusable = self.reusable.get(resource, 0) if reuse else 0
                found.append(self._sets(devices, resource, number, reusable, preferred_only))
        return found

    def allocate(self, container: ContainerDemand, affinity: int | None) -> dict[str, int]:
        """Returns the devices of a container by resource, which then are taken. Raises Refused."""
        taken: dict[str, int] = {}
        for resource, number in container.devices:
            devices = self.machine.devices.get(resource)
            if not devices:
                continue  # no device plugin serves it
            if not any(device.healthy for device in devices):
                raise unexpected(f"no healthy devices present; cannot allocate unhealthy devices {resource}")
            if number:
                taken[resource] = self._choose(devices, resource, number, affinity)
        for resource, chosen in taken.items():
            self.usage.devices[resource] &= ~chosen
            left = self.reusable.get(resource, 0)
            self.reusable[resource] = left | chosen if container.leaves_for_reuse else left & ~chosen
        return taken

    def _sets(
        self, devices: Sequence[Device], resource: str, number: int, reusable: int, preferred_only: bool
    ) -> dict[int, bool]:
        free = self.usage.devices[resource]
        if (free | reusable).bit_count() < number:
            return {}
        everywhere = self.machine.all_zones
        attached = [device.numa & everywhere for device in devices if device.numa]
        available = [devices[index].numa & everywhere for index in each_bit(free) if devices[index].numa]
        kept = [devices[index].numa & everywhere for index in each_bit(reusable) if devices[index].numa]
        hosts = union(attached)
        if preferred_only and not any([numa & (numa - 1) for numa in attached]):  # noqa: C419
            of_all, of_free = self._counts(attached), self._counts(available)
            return {
                zones: True
                for zones in narrowest_sets([of_all], [number], hosts)
                if len(kept) + in_set(of_free, zones) >= number and all(numa & zones for numa in kept)
            }
        in_all, left = self._in_sets(attached), self._in_sets(available)
        sets = [zones for zones in range(1, everywhere + 1) if zones & ~hosts == 0]
        width = min((zones.bit_count() for zones in sets if in_all[zones] >= number), default=hosts.bit_count())
        return {
            zones: zones.bit_count() == width
            for zones in sets
            if len(kept) + left[zones] >= number and all(numa & zones for numa in kept)
        }

    def _in_sets(self, devices: Sequence[int]) -> list[int]:
        """Returns how many devices are attached to a NUMA node of each set. A device of several counts once."""
        sums = set_sums(self._counts([numa for numa in devices if not numa & (numa - 1)]))
        for numa in [numa for numa in devices if numa & (numa - 1)]:
            sums = [number + (1 if zones & numa else 0) for zones, number in enumerate(sums)]
        return sums

    def _counts(self, devices: Sequence[int]) -> list[int]:
        """Returns how many devices each NUMA node has; each is attached to one."""
        counts = [0] * self.machine.zones
        for numa in devices:
            counts[numa.bit_length() - 1] += 1
        return counts

    def _choose(self, devices: Sequence[Device], resource: str, number: int, affinity: int | None) -> int:
        """Returns devices: left by init containers first, then on the NUMA nodes of the affinity, then any."""
        chosen = _lowest(self.reusable.get(resource, 0), number)
        needed = number - chosen.bit_count()
        free = self.usage.devices[resource]
        if needed > free.bit_count():
            raise unexpected(
                f"requested number of devices unavailable for {resource}. "
                f"Requested: {needed}, Available: {free.bit_count()}"
            )
        if affinity is not None:
            aligned = sum(1 << index for index in each_bit(free) if devices[index].numa & affinity)
            chosen |= _lowest(aligned, needed)
        return chosen | _lowest(free & ~chosen, number - chosen.bit_count())


def _lowest(devices: int, number: int) -> int:
    """Returns the first devices of a set, at most `number`."""
    chosen = 0
    for index in each_bit(devices):
        if chosen.bit_count() >= number:
            break
        chosen |= 1 << index
    return chosen
