"""Which CPUs the static CPU Manager takes out of those that are free."""

from collections.abc import Sequence
from itertools import chain

from kubenexus.api.numa.machine import CpuLayout, each_bit, union
from kubenexus.api.numa.refusal import unexpected


def take_packed(layout: CpuLayout, free: int, number: int, *, align_caches: bool = False) -> int:
    """Returns CPUs: whole sockets and NUMA nodes first, then whole cores, then single CPUs; the fullest places first.

    With `align_caches`, caches come between NUMA nodes and cores. Raises Refused if too few are free.
    """
    if number < 1:
        return 0
    if number > free.bit_count():
        raise unexpected(
            f"not enough cpus available to satisfy request: requested={number}, available={free.bit_count()}"
        )
    taking = _Taking(layout, free, number)
    taking.whole_places()
    if align_caches and taking.needed > 0:
        taking.caches()
    if taking.needed > 0:
        taking.whole_cores()
    if taking.needed > 0:
        taking.single_cpus()
    return taking.taken


def zones_by_fill(layout: CpuLayout, free: int) -> list[int]:
    """Returns the NUMA nodes with free CPUs in the order in which the kubelet fills them."""
    outer, inner = _ordered(layout, free)
    return inner if layout.inner_is_numa else outer


class _Taking:
    """An allocation in progress."""

    def __init__(self, layout: CpuLayout, free: int, number: int) -> None:
        self.layout, self.free, self.needed, self.taken = layout, free, number, 0
        self.socket_size = layout.number // len(layout.sockets)

    def whole_places(self) -> None:
        places = (self._whole_sockets, self._whole_zones)
        for take in places if self.layout.inner_is_numa else reversed(places):
            take()
            if self.needed < 1:
                return

    def caches(self) -> None:
        layout = self.layout
        size = layout.number // len(layout.caches)
        for cache in self._caches():
            if self.needed >= size:
                for other in self._caches():
                    cpus = layout.caches[other]
                    if cpus & ~self.free == 0 and self.needed >= cpus.bit_count():
                        self._take(cpus)
            if self.needed < 1:
                return
            self._part_of_cache(layout.caches[cache])
            if self.needed < 1:
                return

    def whole_cores(self) -> None:
        threads = self.layout.threads
        for core in self._cores():
            if (core & self.free).bit_count() == threads and self.needed >= core.bit_count():
                self._take(core)

    def single_cpus(self) -> None:
        for cpu in chain.from_iterable(each_bit(core & self.free) for core in self._cores()):
            self._take(1 << cpu)
            if self.needed < 1:
                return

    def _take(self, cpus: int) -> None:
        self.taken |= cpus
        self.free &= ~self.taken
        self.needed -= cpus.bit_count()

    def _whole_sockets(self) -> None:
        outer, inner = _ordered(self.layout, self.free)
        sockets = [self.layout.sockets[each] for each in (outer if self.layout.inner_is_numa else inner)]
        for cpus in [cpus for cpus in sockets if (cpus & self.free).bit_count() == self.socket_size]:
            if self.needed >= cpus.bit_count():
                self._take(cpus)

    def _whole_zones(self) -> None:
        zones = [self.layout.numa[each] for each in zones_by_fill(self.layout, self.free)]
        for cpus in [cpus for cpus in zones if cpus & ~self.free == 0]:
            if self.needed >= cpus.bit_count():
                self._take(cpus)

    def _cores(self) -> list[int]:
        """Returns the cores with free CPUs in the order in which they are taken."""
        layout, free = self.layout, self.free
        places = layout.numa if layout.inner_is_numa else layout.sockets
        return [
            layout.cores[core]
            for place in _ordered(layout, free)[1]
            for core in _by_free(layout.cores, free & places[place])
        ]

    def _caches(self) -> list[int]:
        layout, free = self.layout, self.free
        return [
            cache for zone in zones_by_fill(layout, free) for cache in _by_free(layout.caches, free, layout.numa[zone])
        ]

    def _part_of_cache(self, cache: int) -> None:
        threads, needed = self.layout.threads, self.needed
        cores = [core for core in self.layout.cores if core & self.free & cache][: -(-needed // threads)]
        cpus = union(cores) & self.free
        if needed % 2 and threads > 1 and cpus.bit_count() > needed:
            cpus &= ~(1 << cpus.bit_length() - 1)
        if cpus.bit_count() == needed:
            self._take(cpus)


def _ordered(layout: CpuLayout, free: int) -> tuple[list[int], list[int]]:
    """Returns the outer places (sockets, or NUMA nodes) with free CPUs in their order, and the inner ones in theirs."""
    places = (layout.sockets, layout.numa) if layout.inner_is_numa else (layout.numa, layout.sockets)
    outer = _by_free(places[0], free)
    return outer, [inner for each in outer for inner in _by_free(places[1], free, places[0][each])]


def _by_free(places: Sequence[int], free: int, inside: int = -1) -> list[int]:
    """Returns the places with free CPUs inside of a larger place, those with the fewest free CPUs first."""
    found = [((free & cpus).bit_count(), index) for index, cpus in enumerate(places) if cpus & free & inside]
    found.sort()
    return [index for _, index in found]
