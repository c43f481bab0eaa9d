"""What one container finds on a NUMA node, as bits: a kubelet's judgement about a row is the union of them.

Under `single-numa-node` a single NUMA node must have all of it free. Under `restricted` a set of NUMA nodes is
preferred that is as narrow as possible: where one NUMA node of the empty machine has enough of every resource, single
NUMA nodes decide as well. Without static memory, `none` and `best-effort` refuse only for lack of totals. In these
cases all bits of `decided` are set on some NUMA node; else sets of them have to be looked at (`api.numa.many_nodes`).
"""

from typing import Any, Final

import numpy as np

from kubenexus.api.numa.machine import BEST_EFFORT, NONE, RESTRICTED
from kubenexus.api.numa.pod_demand import ContainerDemand
from kubenexus.state.numa.zone_states import ZoneState, ZoneStates

FITS: Final = 1  # everything is free here
_CPUS: Final = 2  # the empty NUMA node has enough
_MEMORY: Final = 4  # is free here
_FIRST_DEVICE: Final = 8
_EVERYWHERE: Final = np.ones(1, np.bool_)
_MAX_DEVICES: Final = 8  # resources of devices that have bits; a container with more is looked at in full


class ContainerRule:
    """The bits of a container. `decided` are those that all have to be set."""

    nothing = 0

    def __init__(self, container: ContainerDemand) -> None:
        self.cpus, self.memory = container.cpus, container.memory
        self.devices = container.devices[:_MAX_DEVICES]
        self._too_many = len(container.devices) > _MAX_DEVICES
        self.decided = _CPUS | _MEMORY | sum(_FIRST_DEVICE << number for number in range(len(self.devices)))

    def many(self, states: ZoneStates, codes: Any) -> Any:
        aligned, static_memory = states.field("aligned", codes), states.field("static_memory", codes)
        fits = enough = _EVERYWHERE
        if self.cpus:
            fits = (states.field("free_cpus", codes) >= self.cpus) | states.derived("free_to_cpus", codes, _any_cpus)
            enough = (states.field("all_cpus", codes) >= self.cpus) | states.derived("whole_cpus", codes, _no_wider)
        decided = ~static_memory
        if self._too_many:
            decided = np.zeros(len(aligned), np.bool_)
        elif self.memory:
            here = states.field("own_group", codes)
            for name, size in self.memory:
                total, free, _ = states.amounts("memory", name, codes)
                here = here & (free >= size) & (total >= size)
            fits = fits & (here | ~(static_memory & aligned))
            decided |= here & aligned
        elif self.memory is not None:
            decided = np.ones(len(aligned), np.bool_)
        bits = decided * np.int16(_MEMORY)
        bits += enough * np.int16(_CPUS)
        for number, (resource, wanted) in enumerate(self.devices):
            total, free, reported = states.amounts("devices", resource, codes)
            there = free >= wanted if wanted else total > 0
            fits = fits & (there | ~(reported & aligned))
            bits += ((total >= wanted) | ~(reported & states.field("widens", codes))) * np.int16(
                _FIRST_DEVICE << number
            )
        bits += fits
        return bits

    def one(self, state: ZoneState, states: ZoneStates) -> int:
        """The same for one state."""
        kubelet = states.kinds[state.kind][1]
        aligned = kubelet.policy not in (NONE, BEST_EFFORT)
        widens = kubelet.policy == RESTRICTED
        fits, bits = True, 0
        cpus = self.cpus if kubelet.static_cpus else 0
        if cpus and aligned:
            fits = state.free_cpus >= cpus and state.all_cpus > 0
        if not cpus or not widens or state.all_cpus >= cpus:
            bits |= _CPUS
        if self._too_many:
            pass
        elif not kubelet.static_memory:
            bits |= _MEMORY
        elif self.memory is not None:
            here = state.own_group and self._has_memory(state)
            if not self.memory or (here and aligned):
                bits |= _MEMORY
            if self.memory and not here and aligned:
                fits = False
        if self.devices:
            bits |= self._enough_devices(state, widens)
            fits = fits and (not aligned or self._has_devices(state))
        return bits | FITS if fits else bits

    def _enough_devices(self, state: ZoneState, widens: bool) -> int:
        """Returns the bits of the devices that the empty NUMA node has enough of."""
        bits, bit = 0, _FIRST_DEVICE
        for resource, wanted in self.devices:
            bits |= bit
            for name, total, _ in state.devices if widens else ():
                if name == resource and total < wanted:
                    bits &= ~bit
            bit <<= 1
        return bits

    def _has_devices(self, state: ZoneState) -> bool:
        for resource, wanted in self.devices:
            for name, total, free in state.devices:
                if name == resource and (free < wanted or not total):
                    return False
        return True

    def _has_memory(self, state: ZoneState) -> bool:
        for wanted, size in self.memory or ():
            for kind, total, free in state.memory:
                if kind == wanted:
                    if free < size or total < size:
                        return False
                    break
            else:
                if size > 0:
                    return False
        return True


def _any_cpus(states: ZoneStates, codes: Any) -> Any:
    """Returns the states on which a container fits with any choice of free CPUs."""
    return ~(states.field("aligned", codes) & states.field("static_cpus", codes))


def _no_wider(states: ZoneStates, codes: Any) -> Any:
    """Returns the states on which the number of CPUs does not make a container need several NUMA nodes."""
    return ~(states.field("widens", codes) & states.field("static_cpus", codes))
