"""The score of one node as plain numbers: after each placement one row is scored again, and columns are slow for that.

The numbers are those of `zones.Zones.scores`, computed in the same order, so that both round alike.
"""

from kubenexus.api.numa.machine import Machine, Usage
from kubenexus.api.numa.many_nodes import devices_by_zone
from kubenexus.plugins.numa.points import BEST_USE, LEAST_FITTING, NEUTRAL, WITH_DEVICES, WITHOUT_DEVICES
from kubenexus.plugins.numa.request import NumaRequest, Wanted, is_intensive
from kubenexus.state.numa.columns import RowNuma

_MEMORY = "memory"


def one_score(request: NumaRequest, wanted: Wanted, here: RowNuma) -> int | None:
    """Returns the score of a row; None if no NUMA node fits, and the sets of them have to be looked at."""
    machine, usage = here.reported.machine, here.usage
    static = here.reported.kubelet
    memory = machine.memory.get(_MEMORY, (0,) * machine.zones)
    free_memory = usage.memory.get(_MEMORY, [0] * machine.zones)
    bonuses, fits = _devices(wanted, machine, usage)
    intensive = is_intensive(request, wanted)
    best = -1.0
    for zone, number in enumerate(here.reported.ids):
        cpus = machine.cpus.numa[zone]
        free, total = (cpus & usage.cpus).bit_count(), cpus.bit_count()
        if not fits[zone] or number in request.avoided or (static.static_cpus and wanted.cores > free):
            continue
        if any(memory) and wanted.memory > free_memory[zone]:
            continue
        use = 100 - 100 * max(free - wanted.cores, 0) / max(total, 1)
        if memory[zone]:
            of_memory = 100 - 100 * max(free_memory[zone] - wanted.memory, 0) / max(memory[zone], 1)
            use = 0.6 * use + 0.4 * of_memory
        fit = 100 - max(BEST_USE[0] - use, use - BEST_USE[1], 0)
        if number in request.preferred:
            fit = min(fit * 1.2, 100)
        bandwidth: float = NEUTRAL
        if intensive and memory[zone]:
            bandwidth = max(100 - 100 * wanted.memory / memory[zone], 0)
        points = 0.40 * fit + 0.25 * bandwidth + 0.20 * _distance(machine, zone, request.weight) + 0.15 * NEUTRAL
        best = max(best, min(max(points + bonuses[zone], 0), 100))
    return None if best < 0 else int(LEAST_FITTING + best * (100 - LEAST_FITTING) / 100 + 0.5)


def _distance(machine: Machine, zone: int, weight: int) -> float:
    if machine.zones < 2:
        return 100
    distances = machine.distances[zone]
    mean = (sum(distances) - distances[zone]) / (machine.zones - 1)
    return min(max(100 - (mean - 10) * 5 * weight / 50, 0), 100)


def _devices(wanted: Wanted, machine: Machine, usage: Usage) -> tuple[list[int], list[bool]]:
    """Returns the points for devices on each NUMA node, and which NUMA nodes have enough of all."""
    bonuses, fits = [0] * machine.zones, [True] * machine.zones
    for resource, number in wanted.devices:
        if resource not in machine.devices or not any(device.numa for device in machine.devices[resource]):
            continue
        for zone, free in enumerate(devices_by_zone(machine, resource, usage.devices[resource])):
            enough = free >= number
            fits[zone] = fits[zone] and enough
            bonuses[zone] = WITH_DEVICES if enough and bonuses[zone] >= 0 else WITHOUT_DEVICES
    return bonuses, fits
