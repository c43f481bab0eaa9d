"""One run: a control plane of its own, all gangs exist, and then the processes of one scheduler start."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from bench.live.cases import CASES, RACK_OF, WORKER, Case, pod, rack_of
from bench.live.meters import cpu_of, memory_of, program
from bench.live.stage import CLOCK, CREATORS, Stage, at_most, staged
from bench.live.witness import PREFIX, Witness
from bench.peers.peer import Gang, Peer
from kubenexus.client import kinds
from kubenexus.client.verbs import list_call
from kubenexus.testing.controlplane import ManagedProcess, Object

POLL_SECONDS = 2.0
AFTERWARDS = 3.0  # seconds after the last bind until CPU is read: events are part of the work
SERVERS = ("kube-apiserver", "etcd")


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of one run. CPU in seconds for 1,000 bound pods; `cpu` and `peak_mb` of all its processes together."""

    who: str
    version: str
    case: str
    pods: int
    bound: int
    seconds: float  # from the start of the processes to the last bind, or to the end of the patience
    first: float  # to the first bind
    cpu: float
    server_cpu: float  # of the API server and etcd
    peak_mb: float
    partial: int  # gangs of which some members are bound, and others are not
    scattered: int  # gangs that were to be in one rack, and are in several
    processes: int

    @property
    def rate(self) -> float:
        return self.bound / self.seconds


class Ended(Exception):
    """A process of a scheduler has ended; the message has the end of its log."""


def gangs_of(case: Case, count: int) -> list[Gang]:
    """So many gangs as the case has them."""
    assert case.gangs is not None, f"{case.name} has no gangs"
    return [Gang(f"gang-{number:04d}", case.gangs.size, case.gangs.rack) for number in range(count)]


def members_of(peer: Peer, case: Case, gangs: list[Gang]) -> list[Object]:
    """Their pods, interleaved: the first member of each, then the second of each."""
    pods = [pod(case, f"{PREFIX}{number:05d}") for number in range(len(gangs) * gangs[0].size)]
    for number, each in enumerate(pods):
        each["spec"]["schedulerName"] = peer.scheduler_name
        peer.join(each, gangs[number % len(gangs)])
    return pods


def partial_gangs(bound: Iterable[str], gangs: int, size: int) -> int:
    """How many gangs have some of their members bound, but not all; by the names of bound pods."""
    counts = Counter(_gang(name, gangs) for name in bound)
    return sum(count < size for count in counts.values())


def scattered_gangs(placed: Mapping[str, str], gangs: int) -> int:
    """How many gangs are in several racks; by the nodes of bound pods."""
    racks: dict[int, set[str]] = defaultdict(set)
    for name, node in placed.items():
        racks[_gang(name, gangs)].add(rack_of(int(node.removeprefix(WORKER))))
    return sum(len(each) > 1 for each in racks.values())


async def run(peer: Peer, case_name: str, nodes: int, count: int, patience: float) -> Result:
    """Raises Ended."""
    case = CASES[case_name]
    gangs = gangs_of(case, count)
    async with staged(gangs=True) as stage:
        await stage.furnish(nodes)
        namespace = await stage.namespace()
        racks = -(-nodes // RACK_OF) if gangs[0].rack else 0
        await asyncio.to_thread(peer.prepare, stage.plane, namespace, racks)
        witness = Witness(stage.plane, namespace, len(gangs) * gangs[0].size)
        try:
            await witness.ready()
            await _declare(stage, peer, case, gangs, namespace)
            result = await _measured(stage, peer, witness, gangs, patience)
            scattered = await _scattered(stage, namespace, gangs)
            return msgspec.structs.replace(result, case=case_name, scattered=scattered)
        finally:
            witness.close()


async def _declare(stage: Stage, peer: Peer, case: Case, gangs: list[Gang], namespace: str) -> None:
    groups = [group for gang in gangs if (group := peer.group(gang)) is not None]
    await asyncio.to_thread(_create_all, stage, groups, namespace)
    pods = members_of(peer, case, gangs)

    async def create(number: int) -> None:
        await stage.make(kinds.PODS, pods[number], namespace)

    await at_most(CREATORS, create, len(pods))


def _create_all(stage: Stage, objects: list[Object], namespace: str) -> None:
    cluster = stage.plane.cluster()
    for each in objects:
        cluster.create(each, namespace)


async def _measured(stage: Stage, peer: Peer, witness: Witness, gangs: list[Gang], patience: float) -> Result:
    before, began = _server_cpu(stage), CLOCK.now()
    processes = await asyncio.to_thread(peer.start, stage.plane)
    await _wait(witness, processes, patience - (CLOCK.now() - began))
    stopped = CLOCK.now()
    await asyncio.sleep(AFTERWARDS)
    _must_run(processes)
    own = sum(cpu_of(each.pid) for each in processes)
    peak = sum(memory_of(each.pid, "VmHWM") for each in processes)
    used = _server_cpu(stage) - before
    seen = await witness.testimony()
    bound, pods = len(seen.bound), len(gangs) * gangs[0].size
    thousands = max(bound, 1) / 1000
    return Result(
        who=peer.name,
        version=peer.version,
        case="",
        pods=pods,
        bound=bound,
        seconds=(max(seen.bound.values()) if bound == pods else stopped) - began,
        first=min(seen.bound.values(), default=stopped) - began,
        cpu=own / thousands,
        server_cpu=used / thousands,
        peak_mb=peak,
        partial=partial_gangs(seen.bound, len(gangs), gangs[0].size),
        scattered=0,
        processes=len(processes),
    )


async def _wait(witness: Witness, processes: list[ManagedProcess], patience: float) -> None:
    """Until all pods are bound, or the patience is over. Raises Ended."""
    deadline = CLOCK.now() + patience
    while not await witness.whole(POLL_SECONDS) and CLOCK.now() < deadline:
        _must_run(processes)


def _must_run(processes: list[ManagedProcess]) -> None:
    for each in processes:
        if not each.running:
            raise Ended(f"{each.log.stem} has ended\n{each.tail()}")


def _server_cpu(stage: Stage) -> float:
    return sum(cpu_of(program(stage.plane, name).pid) for name in SERVERS)


async def _scattered(stage: Stage, namespace: str, gangs: list[Gang]) -> int:
    if not gangs[0].rack:
        return 0
    listed: Any = msgspec.json.decode(await stage.read(list_call(kinds.PODS, namespace=namespace)))
    placed = {
        each["metadata"]["name"]: each["spec"]["nodeName"]
        for each in listed["items"]
        if each["metadata"]["name"].startswith(PREFIX) and each["spec"].get("nodeName")
    }
    return scattered_gangs(placed, len(gangs))


def _gang(name: str, gangs: int) -> int:
    return int(name.removeprefix(PREFIX)) % gangs
