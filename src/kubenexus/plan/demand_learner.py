"""Learns what pods ask for, from what was placed and what was refused, and makes a `Demand` of it.

Counts are kept by namespace and shape. All of them are bounded, and so is the weight of each namespace: pods that were
refused count at most as many as the namespace has placed, so that a tenant cannot steer others by pods that never run.
The mix is published when the counts have doubled, prices when one changes by about a third. Until `FIRST` pods with
GPUs were placed there is no demand, and the rules of islands decide.
"""

import math
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from kubenexus.api.core import Pod
from kubenexus.api.devices.device_resources import is_device_resource
from kubenexus.api.devices.device_share import WHOLE
from kubenexus.api.resource_names import CPU
from kubenexus.framework.decision import PodPlacement
from kubenexus.framework.job import Job
from kubenexus.plugins.devices.demand.node_states import gpu_types, gpus_left
from kubenexus.plugins.devices.request import needs_of
from kubenexus.state.demand import MAX_TYPES, Demand, DemandShape, SlotDemand, required_types
from kubenexus.state.footprint import Footprint, footprint_of
from kubenexus.state.ledger import Ledger
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.view import Nodes

FIRST: Final = 32  # pods with GPUs
CHECK_EVERY: Final = 16  # jobs: prices
MAX_COUNTED: Final = 16_384  # pods: then all counts are halved
MAX_NAMESPACES: Final = 256  # further ones are counted together
MAX_SHAPES: Final = 64  # of a namespace
MAX_MIX: Final = 128  # shapes
MAX_PODS: Final = 64  # of a job that are looked at
MAX_GPUS: Final = 64
WAITING_ALLOWED: Final = 16  # pods that a namespace may have refused before it has placed as many
CPU_STEP, GPU_STEP = 1000, 50  # thousandths
SLOTS: Final = (2, 4, 8)  # GPUs
LIKELY: Final = 0.1  # pods
SLOT_POWER, TYPE_POWER = 4, 2
LEAST_PRICE: Final = 20  # thousandths of a GPU: less counts as nothing
# Weights in pods. The prior keeps slots of all sizes worth something until a mix is known.
PRIOR_WEIGHT: Final = 20.0
PRIOR: Final = (
    (DemandShape(4000), 0.12),
    (DemandShape(8000, 1, 200), 0.12),
    (DemandShape(8000, 1, 500), 0.18),
    (DemandShape(8000, 1, WHOLE), 0.48),
    (DemandShape(16_000, 2, WHOLE), 0.025),
    (DemandShape(32_000, 4, WHOLE), 0.025),
    (DemandShape(64_000, 8, WHOLE), 0.05),
)
PRIOR_TYPE: Final = 0.1  # pods that need one GPU of a type, for each type
_OTHERS: Final = ""


class _Counts:
    """Pods of one namespace by shape, at most `MAX_SHAPES`: one more takes the place of the rarest.

    What was refused is halved when it is more than what was placed.
    """

    def __init__(self) -> None:
        self.placed: dict[DemandShape, int] = {}
        self.refused: dict[DemandShape, int] = {}

    def add(self, shape: DemandShape, *, placed: bool) -> None:
        counts = self.placed if placed else self.refused
        if not placed and sum(counts.values()) >= max(sum(self.placed.values()), WAITING_ALLOWED):
            counts = self.refused = _halved(counts)
        if shape not in counts and len(counts) >= MAX_SHAPES:
            del counts[min(counts, key=lambda each: (counts[each], each))]
        counts[shape] = counts.get(shape, 0) + 1

    def halve(self) -> None:
        self.placed, self.refused = _halved(self.placed), _halved(self.refused)


class DemandLearner:
    """Counts the jobs of some profiles that were decided, and sets the ledger's demand when another one is due."""

    def __init__(self, profiles: Collection[str]) -> None:
        self._profiles = frozenset(profiles)
        self._counts: dict[str, _Counts] = {}
        self._total = self._on_gpus = self._since = self._unchecked = 0
        self._due = FIRST
        self._current: Demand | None = None

    def decided(self, job: Job, ledger: Ledger, *, placed: bool, placements: Iterable[PodPlacement] = ()) -> None:
        """Counts a job, after its decision was committed. What pods request is read again, but for `placements`."""
        if not ledger.nodes.devices.count or job.profile not in self._profiles:
            return
        footprints = {each.pod: each.footprint for each in placements}
        for pod in job.pods[:MAX_PODS]:
            self._count(pod, footprints.get(pod.key), placed=placed)
        self._unchecked += 1
        mix_is_due = self._since >= self._due and self._on_gpus >= FIRST
        if not mix_is_due and (self._current is None or self._unchecked < CHECK_EVERY):
            return
        self._unchecked = 0
        demand = self._published(ledger.nodes, renew=mix_is_due)
        if demand is not None:
            ledger.set_demand(demand)

    def _count(self, pod: Pod, footprint: Footprint | None, *, placed: bool) -> None:
        try:
            shape = shape_of(pod, footprint)
        except Exception:  # a pod may contain anything; the decision says what is wrong with it
            return
        namespace = pod.metadata.namespace
        if namespace not in self._counts and len(self._counts) >= MAX_NAMESPACES:
            namespace = _OTHERS
        self._counts.setdefault(namespace, _Counts()).add(shape, placed=placed)
        if not placed:
            return
        self._total += 1
        self._since += 1
        self._on_gpus += shape.gpus > 0
        if self._total > MAX_COUNTED:
            for counts in self._counts.values():
                counts.halve()
            self._total //= 2

    def _published(self, nodes: NodeColumns, *, renew: bool) -> Demand | None:
        cluster, known = _Cluster(nodes), self._current
        if renew or known is None:
            mix = self._mix(cluster.types)
            self._since, self._due = 0, max(self._total, FIRST)
            known = None
            version = (self._current.mix_version if self._current is not None else 0) + 1
        else:
            mix, version = known.mix, known.mix_version
        slots, prices = cluster.slots(mix), cluster.type_prices(mix)
        if known is not None and _same_prices(known, slots, prices):
            return None
        types, on_gpu_nodes = (
            (cluster.types, cluster.on_gpu_nodes) if known is None else (known.types, known.on_gpu_nodes)
        )
        self._current = Demand(version, mix, slots, types, prices, on_gpu_nodes)
        return self._current

    def _mix(self, types: tuple[tuple[str, int], ...]) -> tuple[tuple[DemandShape, float], ...]:
        weights = {shape: share * PRIOR_WEIGHT for shape, share in PRIOR}
        for name, _ in types:
            weights[DemandShape(8000, 1, WHOLE, (name,))] = PRIOR_TYPE
        for counts in self._counts.values():
            for shape, count in (*counts.placed.items(), *counts.refused.items()):
                weights[shape] = weights.get(shape, 0.0) + count
        kept = sorted(weights.items(), key=lambda each: (-each[1], each[0]))[:MAX_MIX]
        total = sum(weight for _, weight in kept)
        return tuple((shape, weight / total) for shape, weight in kept)


class _Hardware(NamedTuple):
    """GPU types: their names, the number of each row's, those that are separate, most GPUs first, each with the GPUs
    of its largest node; and whether most nodes have GPUs."""

    names: list[str]
    which: Any
    types: tuple[tuple[str, int], ...]
    on_gpu_nodes: bool


def _hardware(nodes: NodeColumns) -> _Hardware:
    found, which = np.unique(gpu_types(Nodes(nodes)).astype(str), return_inverse=True)
    names, there = found.tolist(), np.bitwise_count(nodes.devices.gpus[: nodes.size]).astype(np.int64)
    numbers = np.bincount(which, weights=there, minlength=len(names)).tolist()
    ordered = sorted([(-number, name) for name, number in zip(names, numbers, strict=True) if name and number])
    types = tuple((name, int(there[which == names.index(name)].max())) for _, name in ordered[: MAX_TYPES - 1])
    return _Hardware(names, which, types, on_gpu_nodes=2 * int((there > 0).sum()) > nodes.count)


class _Cluster:
    """What is free in the cluster: by slot, and by GPU type."""

    def __init__(self, nodes: NodeColumns) -> None:
        hardware: _Hardware = nodes.cached_until_node_change("hardware of demand", lambda: _hardware(nodes))
        self.types, self.on_gpu_nodes = hardware.types, hardware.on_gpu_nodes
        view = Nodes(nodes)
        left = gpus_left(view)
        self._cpu = np.maximum(view.alloc(CPU) - view.used(CPU), 0)
        self._whole = (left == WHOLE).sum(axis=0)
        free = left.sum(axis=0) / WHOLE
        self._idle = float(free.sum())
        by_type = np.bincount(hardware.which, weights=free, minlength=len(hardware.names)).tolist()
        self._free: Mapping[str, float] = dict(zip(hardware.names, by_type, strict=True))

    def slots(self, mix: Iterable[tuple[DemandShape, float]]) -> tuple[SlotDemand, ...]:
        shapes = list(mix)
        on_gpus = sum(shape.on_gpus * share for shape, share in shapes) or 1.0
        found = []
        for size in SLOTS:
            those = [(shape, share) for shape, share in shapes if shape.gpus == size and shape.milli == WHOLE]
            if not those:
                continue
            cpu = max(min(shape.cpu for shape, _ in those), 1)
            expected = sum(share for _, share in those) / on_gpus * self._idle
            if expected > LIKELY:
                expected = max(expected, 1.0)  # in a small cluster the last slot is worth as much as the pod needs
            left = int(np.minimum(self._whole // size, self._cpu // cpu).sum())
            price = _level(size * WHOLE * min(1.0, expected / max(left, 1)) ** SLOT_POWER)
            found.append(SlotDemand(size, cpu, math.ceil(expected), left, price))
        return tuple(found)

    def type_prices(self, mix: Iterable[tuple[DemandShape, float]]) -> tuple[tuple[str, int], ...]:
        wanted: dict[str, float] = {}
        on_gpus = 0.0
        for shape, share in mix:
            on_gpus += shape.on_gpus * share
            for name in shape.types:
                wanted[name] = wanted.get(name, 0.0) + shape.on_gpus * share / len(shape.types)
        found = []
        for name, _ in self.types:
            expected = wanted.get(name, 0.0) / (on_gpus or 1.0) * self._idle
            price = _level(WHOLE * min(1.0, expected / max(self._free.get(name, 0.0), 1.0)) ** TYPE_POWER)
            if price:
                found.append((name, price))
        return tuple(found)


def shape_of(pod: Pod, footprint: Footprint | None = None) -> DemandShape:
    """Returns what a pod asks for, in steps. Raises Malformed if its requests cannot be read."""
    amounts = dict((footprint or footprint_of(pod)).amounts)
    cpu = -(-amounts.get(CPU, 0) // CPU_STEP) * CPU_STEP
    needs = needs_of(pod)
    if needs is None:
        return DemandShape(cpu)
    gpus = min(sum([amount for name, amount in amounts.items() if is_device_resource(name)]), MAX_GPUS)
    milli = WHOLE
    if needs.needs.share or needs.needs.share_memory:
        milli = min(-(-(needs.needs.share or WHOLE // 2) // GPU_STEP) * GPU_STEP, WHOLE)
        gpus = max(gpus, 1)
    return DemandShape(cpu, gpus, milli if gpus else 0, required_types(pod) if gpus else ())


def _halved(counts: dict[DemandShape, int]) -> dict[DemandShape, int]:
    return {shape: count // 2 for shape, count in counts.items() if count > 1}


def _level(price: float) -> int:
    """Returns a price rounded to half powers of two, so that it changes seldom."""
    return 0 if price < LEAST_PRICE else round(2 ** (round(2 * math.log2(price)) / 2))


def _same_prices(known: Demand, slots: tuple[SlotDemand, ...], prices: tuple[tuple[str, int], ...]) -> bool:
    return known.type_prices == prices and [each.price for each in known.slots] == [each.price for each in slots]
