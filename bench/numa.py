"""The benches of NUMA: pods whose kubelets align them, beside the same pods on the same nodes without NUMATopology.

`ratio` is what it costs to predict the kubelets. Every node reports its NUMA nodes, and what is in use differs from
node to node, so that hardly two nodes are in the same state. Three of four kubelets have the policy single-numa-node,
the others restricted; both managers are static.
"""

import functools
import itertools
import random
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from bench.cluster import BenchError, decide_and_commit
from bench.measure import Round, clock
from kubenexus.api.core import Container, Node, Pod, ResourceRequirements
from kubenexus.api.devices.node_resource_topology import (
    NUMA_ZONE,
    NodeResourceTopology,
    TopologyAttribute,
    Zone,
    ZoneCost,
    ZoneResource,
)
from kubenexus.api.meta import ObjectMeta
from kubenexus.framework.job import Job
from kubenexus.framework.profile import Profile
from kubenexus.plan.decide import Planner, commit
from kubenexus.plugins import profile_plugins, shipped_profile
from kubenexus.state.ledger import Ledger
from kubenexus.testing.builders import a_node, a_pod

GPU = "nvidia.com/gpu"
PLUGIN = "NUMATopology"
MEMBERS = 1000
DRAIN = 200  # pods that are placed before they are all taken back
_GI = 1 << 30
_numbers = itertools.count()


class Machine(NamedTuple):
    """A node: its NUMA nodes, and of each the CPUs, GiB of memory and GPUs."""

    zones: int
    cpus: int
    memory: int
    gpus: int


MACHINES = {"2 NUMA nodes": Machine(2, 64, 512, 4), "8 NUMA nodes": Machine(8, 16, 128, 1)}


def with_numa() -> Profile:
    """The shipped profile, which has NUMATopology."""
    return shipped_profile()


def without_numa() -> Profile:
    """The shipped profile without NUMATopology."""
    profile = shipped_profile()
    kept = tuple(each for each in profile.plugins if each.name != PLUGIN)
    return msgspec.structs.replace(profile, plugins=kept)


def numa_node(number: int, machine: Machine) -> Node:
    zones = machine.zones
    return a_node(
        f"numa-{number}",
        cpu=zones * machine.cpus,
        memory=f"{zones * machine.memory}Gi",
        resources={GPU: zones * machine.gpus},
    )


def topology(number: int, machine: Machine) -> NodeResourceTopology:
    """What the node reports: each NUMA node has some CPUs and memory in use, and here and there a GPU."""
    chance = random.Random(number)
    zones = range(machine.zones)
    return NodeResourceTopology(
        metadata=ObjectMeta(name=f"numa-{number}"),
        zones=[_zone(zone, machine, chance) for zone in zones],
        attributes=[
            TopologyAttribute(
                name="topologyManagerPolicy", value="restricted" if number % 4 == 3 else "single-numa-node"
            ),
            TopologyAttribute(name="topologyManagerScope", value="container"),
        ],
    )


def _zone(zone: int, machine: Machine, chance: random.Random) -> Zone:
    cpus = machine.cpus - chance.randrange(machine.cpus // 2)
    memory = machine.memory - chance.randrange(machine.memory // 2)
    gpus = machine.gpus - (chance.random() < 0.25)
    costs = [ZoneCost(name=f"node-{other}", value=10 if other == zone else 21) for other in range(machine.zones)]
    return Zone(
        name=f"node-{zone}",
        type=NUMA_ZONE,
        costs=costs,
        resources=[
            _resource("cpu", machine.cpus, cpus),
            _resource("memory", machine.memory * _GI, memory * _GI),
            _resource(GPU, machine.gpus, gpus),
        ],
    )


def _resource(name: str, total: int, available: int) -> ZoneResource:
    return ZoneResource(name=name, capacity=str(total), allocatable=str(total), available=str(available))


@functools.lru_cache(maxsize=4)
def _template(memory: int) -> Pod:
    amounts = {"cpu": "2", "memory": str(8 * _GI + memory), GPU: "1"}
    main = Container(name="main", resources=ResourceRequirements(requests=dict(amounts), limits=dict(amounts)))
    return a_pod("template", containers=[main])


def numa_pod(memory: int = 0) -> Pod:
    """A Guaranteed pod of two CPUs, 8 GiB and a GPU. `memory` in bytes tells classes apart."""
    template, number = _template(memory), next(_numbers)
    meta = msgspec.structs.replace(template.metadata, name=f"n-{number}", uid=f"uid-{number}")
    return msgspec.structs.replace(template, metadata=meta)


def numa_ledger(nodes: int, machine: Machine, *, reads_numa: bool = True) -> Ledger:
    """The cluster; without `reads_numa` the reports count for devices alone, as in a profile without the plugin."""
    ledger = Ledger(reads_numa=reads_numa)
    for number in range(nodes):
        ledger.upsert_node(numa_node(number, machine))
        ledger.upsert_node_topology(topology(number, machine))
    ledger.read_devices()
    return ledger


class Deciding:
    """Pods of one kind, with one planner. `cold`: each is a class of its own. `place`: the commit is timed as well."""

    def __init__(
        self, ledger: Ledger, profile: Profile, calls: int, *, cold: bool = False, place: bool = False
    ) -> None:
        self._ledger, self._planner = ledger, Planner(profile_plugins(profile))
        self._calls, self._cold, self._place = calls, cold, place
        self._classes = itertools.count(1)
        self._placed: list[str] = []

    def round(self) -> float:
        spent = 0.0
        for _ in range(self._calls):
            job = Job.of(numa_pod(next(self._classes) if self._cold else 0))
            snapshot = self._ledger.snapshot()
            start = clock()
            decision = self._planner.decide(job, snapshot, 0.0)
            decided = clock()
            if not decision.placed:
                raise BenchError(f"not placed: {decision.sentence()}")
            commit(decision, job, self._ledger, 0.0)
            spent += (clock() if self._place else decided) - start
            self._placed.append(job.pods[0].key)
        if len(self._placed) >= DRAIN:
            for key in self._placed:
                self._ledger.forget(key)
            self._placed.clear()
        return spent / self._calls


class Gang:
    """Gangs of a thousand such pods; committed and taken back between two plans."""

    def __init__(self, ledger: Ledger, nodes: int, machine: Machine, profile: Profile) -> None:
        self._ledger, self._planner = ledger, Planner(profile_plugins(profile))
        self._members = min(MEMBERS, nodes * machine.zones * machine.gpus // 4)

    def round(self) -> float:
        pods = tuple(numa_pod() for _ in range(self._members))
        job = Job(f"default/gang/{next(_numbers)}", pods, self._members)
        spent = decide_and_commit(self._planner, job, self._ledger)
        for pod in pods:
            self._ledger.forget(pod.key)
        return spent


def pairs(nodes: int) -> dict[tuple[str, str], Callable[[], tuple[Round, Round]]]:
    """By bench and case: makes the round with NUMATopology and the one without."""
    made: dict[tuple[str, str], Callable[[], tuple[Round, Round]]] = {}

    def both(make: Callable[[Ledger, Profile], Round], machine: Machine) -> tuple[Round, Round]:
        return (
            make(numa_ledger(nodes, machine), with_numa()),
            make(numa_ledger(nodes, machine, reads_numa=False), without_numa()),
        )

    def deciding(machine: Machine, calls: int, cold: bool, place: bool) -> Callable[[], tuple[Round, Round]]:
        def make(ledger: Ledger, profile: Profile) -> Round:
            return Deciding(ledger, profile, min(calls, nodes // 2), cold=cold, place=place).round

        return lambda: both(make, machine)

    def gang(machine: Machine) -> Callable[[], tuple[Round, Round]]:
        return lambda: both(lambda ledger, profile: Gang(ledger, nodes, machine, profile).round, machine)

    for case, machine in MACHINES.items():
        made["numa.warm", case] = deciding(machine, 40, cold=False, place=False)
        made["numa.cold", case] = deciding(machine, 8, cold=True, place=False)
        made["numa.place", case] = deciding(machine, 40, cold=False, place=True)
        made["numa.gang", f"{MEMBERS} members, {case}"] = gang(machine)
    return made
