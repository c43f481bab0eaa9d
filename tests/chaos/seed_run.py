"""One seed, from an empty cluster to the verdict."""

import json
import os
import signal
import ssl
import threading
import urllib.parse
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from random import Random

from kubenexus.base.clock import WallClock
from kubenexus.explain.cluster_dump import read_dump
from kubenexus.state.digest import digest
from kubenexus.testing.controlplane import ClusterClient, ControlPlane
from tests.chaos.api_client import ChaosClient
from tests.chaos.checker import Checker
from tests.chaos.competing_scheduler import CompetingScheduler
from tests.chaos.controller import Controller, Gang
from tests.chaos.faults import Plan
from tests.chaos.proxy import Proxy
from tests.chaos.recordings import replayed
from tests.chaos.replicas import LEASE_SECONDS, Replicas
from tests.chaos.request_log import Asked
from tests.chaos.scenario import Deed, Scenario, Wave
from tests.chaos.seed_cluster import SCHEDULER, SeedCluster
from tests.chaos.seed_result import binds_under_another, evicted_twice, fenced, judged, seconds_led

CLOCK = WallClock()
TICK = 0.05
SENT = 90.0  # seconds for all pods of a wave to be made, with the server away for a while
A_WAVE = 3.0  # seconds after which the next comes, settled or not
CONVERGED = 120.0  # seconds from the last fault until all has to be well; a few, on a machine that is not busy
RELEASED = 60.0  # seconds for which a gang may have too few members on nodes: its deadline here is 5, and faults delay
SETTLED = 20.0  # from then until the ledger has to be what a list says
THIEF = "thief"


@dataclass
class Report:
    """What came of a seed. Good if nothing is in `breaches`."""

    seed: int
    theme: str
    pods: int = 0
    bound: int = 0
    starts: int = 0
    kills: int = 0
    gaps: int = 0
    seconds: float = 0.0
    converged: float = 0.0
    decisions: int = 0  # that were recorded and repeated
    latest: float = 0.0  # the longest time from a renewal to a write
    faults: Counter[str] = field(default_factory=Counter)
    races: list[str] = field(default_factory=list)
    breaches: list[str] = field(default_factory=list)


def play(plane: ControlPlane, scenario: Scenario) -> Report:
    """Nothing of it is left behind in the cluster, whatever happens."""
    began, report = CLOCK.now(), Report(scenario.seed, scenario.theme)
    with ExitStack() as stack:
        SeedRun(plane, scenario, report, stack).run()
    report.seconds = CLOCK.now() - began
    return report


class SeedRun:
    def __init__(self, plane: ControlPlane, scenario: Scenario, report: Report, stack: ExitStack) -> None:
        host, trust = urllib.parse.urlsplit(plane.server).netloc, _trust(plane)
        namespace = f"chaos-{scenario.seed}"
        self._plane, self._scenario, self._report = plane, scenario, report
        self._rng, self._never = Random(f"{scenario.seed}/leaving"), threading.Event()
        self._hands = stack.enter_context(ChaosClient(host, plane.token(), trust))
        self._cluster = SeedCluster(self._hands, namespace)
        stack.callback(self._cluster.clear)
        self._cluster.build(scenario.nodes, scenario.cpu)
        lease = self._cluster.lease
        self._checker = stack.enter_context(
            Checker(host, plane.token(), trust, scheduler=SCHEDULER, lease=lease, deadline=RELEASED)
        )
        self._proxy = Proxy(plane.server, trust, Plan(scenario.seed, scenario.rates))
        self._proxy.start()
        stack.callback(self._proxy.close)
        self._replicas = Replicas(plane, self._proxy, namespace, scenario.replicas)
        stack.callback(self._replicas.stop)
        self._rival = CompetingScheduler(self._cluster, self._checker, scenario.rival, scenario.seed)
        stack.callback(self._rival.stop)
        self._controller = Controller(self._cluster, self._checker, scenario.seed)
        stack.callback(self._controller.stop)
        self._gangs = 0

    def run(self) -> None:
        self._replicas.keep()
        self._rival.start()
        if any(wave.gangs for wave in self._scenario.waves):
            self._controller.start()
        sizes = self._scenario.sizes()
        for wave in self._scenario.waves:
            self._play(wave, sizes)
        self._rival.stop()
        self._proxy.calm()
        self._controller.ends_all = True
        if self._scenario.waves[0].allowed >= 0:
            self._cluster.allow_disruptions(1000)
        self._converge()
        self._replicas.stop()  # their recordings are read next
        self._judge()
        self._replay()

    # --- one wave -------------------------------------------------------------------------------------------------

    def _play(self, wave: Wave, sizes: Random) -> None:
        bound = sorted((pod for pod in self._checker.pods() if pod.node), key=lambda pod: pod.key)
        for path, how in wave.broken:
            self._proxy.break_kind(path, how)
        self._cluster.part(self._rng.sample(bound, min(wave.leave, len(bound))), self._rng)
        if wave.leave and wave.gangs:
            self._controller.retire(1)
        self._cluster.touch_nodes(grow=wave is not self._scenario.waves[0])
        goal, deed = self._proxy.binds + (wave.deed.binds if wave.deed else 0), wave.deed
        if deed is not None and deed.kind == "kill":
            self._proxy.strike(deed.binds, self._kill)
            if self._scenario.theme == "burst":
                self._proxy.strike(deed.binds // 3, lambda asked: self._proxy.hold_back(asked.who))
        if deed is not None and deed.kind == "lose":
            self._proxy.strike(deed.binds, self._lose)
        if deed is not None and deed.kind == "kill at eviction":
            self._proxy.strike(deed.binds, self._kill, "evict")
        if deed is not None and deed.kind == "forsake":
            self._proxy.strike(deed.binds, self._forsake, "evict")
        if wave.allowed >= 0:
            self._cluster.allow_disruptions(wave.allowed)
        with ThreadPoolExecutor(1) as elsewhere:  # so that the deed comes while they come
            sending = elsewhere.submit(self._send, wave, sizes)
            if deed is not None and deed.kind not in ("kill", "lose", "kill at eviction", "forsake"):
                self._until(lambda: self._proxy.binds >= goal, A_WAVE)
                self._do(deed)
            self._until(sending.done, SENT)
            sending.result(0)
        # The first wave has to wait for the process to start, and a burst (it has one wave) for who takes over.
        patience = 40.0 if wave is self._scenario.waves[0] else A_WAVE
        self._until(self._settled, patience)

    def _send(self, wave: Wave, sizes: Random) -> None:
        if wave.monsters:
            self._cluster.send_monsters(wave.monsters, sizes)
        for size, minimum in wave.gangs:
            self._gangs += 1
            self._controller.add(Gang(f"gang{self._gangs}", size, minimum, sizes.choice(("1", "1", "2")), wave.high))
        if wave.high:
            self._cluster.send_high(wave.pods, sizes)
        elif wave.allowed >= 0:
            self._cluster.send_victims(wave.pods, sizes)
        else:
            self._cluster.send(wave.pods, sizes)

    def _lose(self, asked: Asked) -> None:
        """Called by the proxy before it passes on the bind of a pod. Other members of its gang, or if it is in none
        members of the first gang that waits, are deleted meanwhile: half of those that have no node yet."""
        pods = self._checker.pods()
        gang = next((pod.gang for pod in pods if pod.key == asked.pod), "")
        gang = gang or min((pod.gang for pod in pods if pod.gang and pod.waits), default="")
        waiting = sorted(pod.key for pod in pods if pod.gang == gang and gang and pod.waits and pod.key != asked.pod)
        self._cluster.delete(key.partition("/")[2] for key in waiting[::2])
        self._report.faults["outside: members deleted"] += len(waiting[::2])

    def _forsake(self, asked: Asked) -> None:
        """Called by the proxy before it passes on an eviction. Half of the single pods that wait for their victims are
        deleted, and a gang ends."""
        waiting = sorted(pod.key for pod in self._checker.pods() if pod.nominated and pod.waits and not pod.gang)
        self._cluster.delete(key.partition("/")[2] for key in waiting[::2])
        self._controller.retire(1)
        self._report.faults["outside: preemptors deleted"] += len(waiting[::2])

    def _kill(self, asked: Asked) -> None:
        """Called by the proxy, in the middle of things."""
        self._report.kills += 1
        self._replicas.signal(asked.who, signal.SIGKILL)

    def _do(self, deed: Deed) -> None:
        self._report.faults[f"outside: {deed.kind}"] += 1
        leader = self._proxy.leader
        if deed.kind == "server":
            self._plane.kill_apiserver()
            self._plane.start_apiserver()
        elif deed.kind == "etcd":
            self._paused(self._etcd(), deed.seconds)
        elif deed.kind == "steal":
            self._cluster.steal_lease(THIEF)
        elif leader and deed.kind == "term":
            self._replicas.signal(leader, signal.SIGTERM)
        elif leader and deed.kind == "pause":
            self._pause_leader(leader)
        elif leader and deed.kind == "deafen":
            self._proxy.deafen(leader)

    def _pause_leader(self, leader: str) -> None:
        """Until its lease is over and another may lead; then it goes on where it was."""
        self._replicas.signal(leader, signal.SIGSTOP)
        try:
            self._until(lambda: self._proxy.leader not in ("", leader), LEASE_SECONDS + 4)
        finally:
            self._replicas.signal(leader, signal.SIGCONT)

    def _paused(self, pid: int, seconds: float) -> None:
        os.kill(pid, signal.SIGSTOP)
        try:
            self._until(lambda: False, seconds)
        finally:
            os.kill(pid, signal.SIGCONT)

    def _etcd(self) -> int:
        return next(program.pid for program in self._plane.family.programs if program.name == "etcd")

    # --- the end --------------------------------------------------------------------------------------------------

    def _converge(self) -> None:
        began, breaches = CLOCK.now(), self._report.breaches
        if not self._until(self._settled, CONVERGED):
            breaches += [f"{breach.law}: {breach.text}" for breach in self._checker.unsettled()]
            end = CLOCK.now()
            led = seconds_led(self._proxy.journal, began, end, LEASE_SECONDS)  # a machine that is too busy loses leases
            breaches.append(f"play: a process led for {led:.0f} of the {end - began:.0f} s until all had to be well")
        self._report.converged = CLOCK.now() - began
        if not self._until(self._same_books, SETTLED, tick=0.25):
            said, rebuilt = self._replicas.digests(), self._rebuilt()
            breaches.append(f"ledger: {said or 'nobody'} where a list gives {rebuilt}")

    def _settled(self) -> bool:
        return not self._checker.unsettled()

    def _same_books(self) -> bool:
        """Whether what each process has in its ledger is what a list gives."""
        said = self._replicas.digests()
        return bool(said) and set(said.values()) == {self._rebuilt()}

    def _rebuilt(self) -> str:
        cluster: ClusterClient = self._plane.cluster()
        kinds = {"Namespace": "/api/v1/namespaces", "Node": "/api/v1/nodes", "Pod": "/api/v1/pods"}
        items = [{"kind": kind, **item} for kind, path in kinds.items() for item in cluster.get(path)["items"]]
        return digest(read_dump(json.dumps({"kind": "List", "items": items}).encode(), "a list").ledger)

    def _judge(self) -> None:
        report, checker, journal = self._report, self._checker, self._proxy.journal
        verdict = judged(list(checker.breaches), journal)
        report.breaches += verdict.breaches
        fence = fenced(journal, LEASE_SECONDS)
        report.breaches += [f"no lease: {text}" for text in fence.breaches]
        report.latest = fence.latest
        seen = binds_under_another(journal, checker.cluster.history, checker.cluster.holders, {THIEF})
        report.breaches += [f"not leading: {text}" for text in seen]
        report.breaches += [f"evicted twice: {text}" for text in evicted_twice(journal)]
        if self._scenario.theme == "burst" and not report.kills:
            report.breaches.append("play: the kill never came")
        report.races = verdict.races
        report.pods, report.bound = self._scenario.pods, checker.bound
        report.starts, report.gaps = self._replicas.starts, checker.gaps
        report.faults += journal.struck
        report.faults["outside: kill -9"] += report.kills
        report.faults["evictions"] += sum(200 <= asked.answer < 300 for asked in journal.evictions)
        report.faults["outside: rival's binds"] += self._rival.bound
        report.faults["outside: members replaced"] += self._controller.replaced

    def _replay(self) -> None:
        """Repeats the decisions of every process, of those too that were killed."""
        for folder in self._replicas.recordings:
            result = replayed(folder)
            self._report.decisions += result.decisions
            if result.first is not None:
                first = f"the first is number {result.first.number}, {result.first.job}"
                self._report.breaches.append(f"replay: {result.differing} decisions of {folder} differ; {first}")

    def _until(self, condition: Callable[[], bool], seconds: float, tick: float = TICK) -> bool:
        """Whether it came true in time. Processes that end meanwhile are started again."""
        deadline = CLOCK.now() + seconds
        while not condition():
            if CLOCK.now() > deadline:
                return False
            self._replicas.keep()
            self._never.wait(tick)
        return True


def _trust(plane: ControlPlane) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(plane.authority))
