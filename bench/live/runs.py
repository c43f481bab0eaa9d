"""One run: one contestant, one case, one mode; from a clean namespace to the figures."""

import asyncio
from collections.abc import Mapping
from typing import Literal

import msgspec

from bench.live import contestants
from bench.live.cases import Case
from bench.live.meters import Asked, asked, cpu_of, memory_of, program
from bench.live.stage import CLOCK, Stage
from bench.live.witness import Testimony, Witness
from kubenexus.testing.controlplane import ManagedProcess

Mode = Literal["drain", "burst"]
PATIENCE = 900.0  # seconds until the last bind
CALM = 0.02  # of a core: less than that for three seconds, and a contestant has told all its events
LONGEST_CALM = 90.0


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of one run. `pods` is what was bound. CPU in seconds for 1,000 pods, by process."""

    case: str
    mode: str
    who: str
    pair: int
    pods: int
    seconds: float  # drain: from the process's start, burst: from the first create; to the last bind
    first: float  # until the first bind
    cpu: dict[str, float]
    calls: dict[str, float]  # per pod
    bytes: dict[str, float]  # per pod
    peak_mb: float
    p50: float  # created to bound, seconds
    p99: float
    watches: int  # the witness's: how often the API server closed them, and one
    scattered: int = 0  # gangs that were to be in one rack, and are not
    evicted: int = 0

    @property
    def rate(self) -> float:
        return self.pods / self.seconds


class NotBound(Exception):
    """A contestant left pods unbound, or ended; the message has the end of its log."""


class Meter:
    """What three processes have used and the API server was asked since `begin`."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._pids = {name: program(stage.plane, name).pid for name in ("kube-apiserver", "etcd")}
        self._before: dict[str, float] = {}
        self._asked: Asked = asked(stage.plane)
        self._sent = stage.sent

    def begin(self, contestant: ManagedProcess, *, fresh: bool) -> None:
        """From now. `fresh`: the contestant has just been started, and what that takes is its own."""
        self._pids["scheduler"] = contestant.pid
        self._before = {name: cpu_of(pid) for name, pid in self._pids.items()}
        if fresh:
            self._before["scheduler"] = 0.0

    def cpu(self) -> dict[str, float]:
        return {name: cpu_of(pid) - self._before[name] for name, pid in self._pids.items()}

    def traffic(self, watched: int) -> Asked:
        """Without what we created and what the witness (`watched` bytes) heard."""
        found = asked(self._stage.plane).since(self._asked)
        found.bytes["sent"] -= self._stage.sent - self._sent
        found.bytes["watched"] -= watched
        return found


async def drain(stage: Stage, case: Case, who: str, pods: int, pair: int) -> Run:
    """The pods are there before the contestant is."""
    namespace = await stage.namespace()
    witness = Witness(stage.plane, namespace, pods)
    contestant: ManagedProcess | None = None
    try:
        await witness.ready()
        await stage.victims(case, namespace)
        await stage.pod_groups(case, namespace, pods)
        await stage.claim_template(case, namespace)
        await stage.pods(case, namespace, pods)
        await stage.until_claimed(case, namespace, pods)
        meter, began = Meter(stage), CLOCK.now()
        contestant = contestants.start(who, stage.plane, stage.gates)
        meter.begin(contestant, fresh=True)
        async with stage.churning(namespace, case.churn):
            await _all_bound(witness, contestant, who)
        cpu, peak = await _settled(meter, contestant)
        contestant.stop()
        seen = await witness.testimony()
        traffic = meter.traffic(seen.bound_bytes)
        run = _figures((case.name, "drain", who, pair), began, seen, cpu, traffic, peak)
        scattered, evicted = await stage.scattered(case, namespace), await stage.evicted(case, namespace)
        return msgspec.structs.replace(run, scattered=scattered, evicted=evicted)
    finally:
        await _end(stage, namespace, witness, contestant)


async def burst(stage: Stage, case: Case, who: str, pods: int, pair: int) -> Run:
    """The contestant runs and has nothing to do; then the pods come as fast as the server takes them."""
    namespace = await stage.namespace()
    witness = Witness(stage.plane, namespace, pods)
    contestant = contestants.start(who, stage.plane, stage.gates)
    try:
        await witness.ready()
        await stage.victims(case, namespace)
        await stage.pod_groups(case, namespace, pods)
        await stage.claim_template(case, namespace)
        await stage.until_awake(namespace, lambda: contestant.running)
        must_run(contestant)
        meter = Meter(stage)
        meter.begin(contestant, fresh=False)
        await _settled(meter, contestant)
        meter.begin(contestant, fresh=False)
        async with stage.churning(namespace, case.churn):
            await stage.pods(case, namespace, pods)
            await _all_bound(witness, contestant, who)
        cpu, peak = await _settled(meter, contestant)
        contestant.stop()
        seen = await witness.testimony()
        traffic = meter.traffic(seen.created_bytes + seen.bound_bytes)
        run = _figures((case.name, "burst", who, pair), min(seen.created.values()), seen, cpu, traffic, peak)
        scattered, evicted = await stage.scattered(case, namespace), await stage.evicted(case, namespace)
        return msgspec.structs.replace(run, scattered=scattered, evicted=evicted)
    finally:
        await _end(stage, namespace, witness, contestant)


MODES = {"drain": drain, "burst": burst}


async def _all_bound(witness: Witness, contestant: ManagedProcess, who: str) -> None:
    waited = 0.0
    while not await witness.whole(10.0):
        waited += 10.0
        if waited >= PATIENCE or not contestant.running:
            seen = await witness.testimony()
            missing = len(seen.created) - len(seen.bound)
            raise NotBound(f"{who}: {missing} pods are not bound after {waited:.0f} s\n{contestant.tail()}")


async def _settled(meter: Meter, contestant: ManagedProcess) -> tuple[dict[str, float], float]:
    """CPU by process and the largest memory, when the contestant has nothing more to tell."""
    calm, waited, before = 0, 0.0, cpu_of(contestant.pid)
    while calm < 3 and waited < LONGEST_CALM:
        await asyncio.sleep(1.0)
        must_run(contestant)
        waited, now = waited + 1.0, cpu_of(contestant.pid)
        calm, before = (calm + 1 if now - before < CALM else 0), now
    return meter.cpu(), memory_of(contestant.pid, "VmHWM")


def must_run(contestant: ManagedProcess) -> None:
    """What a process has used cannot be read when it is gone."""
    if not contestant.running:
        raise NotBound(f"{contestant.log.stem} has ended\n{contestant.tail()}")


async def _end(stage: Stage, namespace: str, witness: Witness, contestant: ManagedProcess | None) -> None:
    witness.close()
    if contestant is not None:
        contestant.stop()
        stage.plane.family.programs.remove(contestant)
    await stage.clean(namespace)


def _figures(
    what: tuple[str, Mode, str, int],
    began: float,
    seen: Testimony,
    cpu: Mapping[str, float],
    traffic: Asked,
    peak: float,
) -> Run:
    case, mode, who, pair = what
    pods = len(seen.bound)
    waits = sorted(max(0.0, when - seen.created[name]) for name, when in seen.bound.items() if name in seen.created)
    return Run(
        case=case,
        mode=mode,
        who=who,
        pair=pair,
        pods=pods,
        seconds=max(seen.bound.values()) - began,
        first=min(seen.bound.values()) - began,
        cpu={name: 1000 * used / pods for name, used in cpu.items()},
        calls={name: count / pods for name, count in traffic.calls.items()},
        bytes={name: count / pods for name, count in traffic.bytes.items()},
        peak_mb=peak,
        p50=waits[len(waits) // 2],
        p99=waits[min(len(waits) - 1, len(waits) * 99 // 100)],
        watches=seen.watches,
    )
