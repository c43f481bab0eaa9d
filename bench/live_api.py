"""What questions cost the scheduling loop: `python -m bench.live_api`, three minutes on an idle machine.

A scheduler in a process of its own is never idle: pods come, are decided, bound at once and deleted. Phases with and
without clients alternate. 50 clients poll, each a page every second, and ten manifests a second are what-ifs. The
figure is decisions a second with clients over those without, the median of neighbouring phases. The exit code is 1 if
it is below 0.9.

Seconds are those that the thread of the loop ran, for the clients and the pace of copies as well: what the machine
gives to other processes, to clients and copies too, does not count. What counts are decisions, requests, forks, and
the pages that the kernel copies because a copy of the process shares them.
"""

import asyncio
import contextlib
import itertools
import json
import multiprocessing
import operator
import random
import resource
import ssl
import statistics
import sys
import time
from collections import Counter, deque
from types import SimpleNamespace
from typing import Any, NamedTuple

import aiohttp
import click
import msgspec

from bench.report import machine
from kubenexus.app.http.api.live_api import LiveApi
from kubenexus.app.http.authorization import RequestAuthorizer
from kubenexus.app.http.server import HttpServer, ServedContent
from kubenexus.app.http.serving_certificates import context_from_pem, make_self_signed
from kubenexus.app.scheduler import Scheduler, SchedulerOptions
from kubenexus.app.scheduling_loop import LoopOptions
from kubenexus.app.watch.informers import InformerHandler, watch_target
from kubenexus.base import gc_tuning
from kubenexus.base.clock import WallClock
from kubenexus.cli.interrupts import loop_factory
from kubenexus.client import kinds
from kubenexus.client.calls import Call, Unreachable
from kubenexus.client.kinds import ApiResource
from kubenexus.client.watch_events import ADDED, DELETED, MODIFIED, decode_watch_lines
from kubenexus.config import load
from kubenexus.config.v1 import SCHEDULER, KubeSchedulerConfiguration
from kubenexus.explain.live_answers import LiveAnswers
from kubenexus.observe.metrics import Metrics
from kubenexus.plugins import BUILT_IN
from kubenexus.testing.large.objects import node
from kubenexus.testing.large.pods import Json, plain

LOCAL, TARGET = "127.0.0.1", 0.9
CLASSES, WAITING, KEPT = 20, 256, 1_000  # of the pods that come: requests, pods at a time, pods that stay for a while
REFUSED = 200  # pods that fit nowhere: what clients ask about
PAGES = ("jobs", "queues", "gangs", "nodes", "map", "decisions")
CONFIG = f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{{schedulerName: {SCHEDULER}}}]
"""


class Spent(NamedTuple):
    """What the loop has done and spent so far."""

    decisions: int
    seconds: float
    faults: int
    copies: int

    def since(self, before: "Spent") -> "Spent":
        return Spent(*map(operator.sub, self, before))

    @property
    def rate(self) -> float:
        return self.decisions / self.seconds

    def text(self) -> str:
        faults, copies = self.faults / self.seconds, self.copies / self.seconds
        return f"{self.rate:5.0f} decisions, {faults:6.0f} page faults, {copies:4.2f} copies a second"


class Server:
    """The process of the scheduler, as the bench sees it."""

    def __init__(self, nodes: int, pods: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = multiprocessing.Pipe()
        self.shown = context.RawValue("d", 0.0)
        self._process = context.Process(target=serve, args=(theirs, self.shown, nodes, pods), daemon=True)
        self._process.start()
        self.port: int = self._connection.recv()

    async def spent(self) -> Spent:
        self._connection.send("spent")
        found: Spent = await asyncio.to_thread(self._connection.recv)
        return found

    def stop(self) -> None:
        self._connection.send("")
        self._process.join(20)


class AllowingServer:
    """Accepts every call: binds and reviews. `bound` are pods that the watch has not shown yet."""

    def __init__(self) -> None:
        self.bound: deque[tuple[str, str]] = deque()

    async def send(self, call: Call, *, timeout: float = 10.0) -> bytes:
        body = msgspec.json.decode(call.body) if call.body else {}
        if call.path.endswith("/binding"):
            self.bound.append((body["metadata"]["name"], body["target"]["name"]))
        if body.get("kind") == "TokenReview":
            return msgspec.json.encode({"status": {"authenticated": True, "user": {"username": body["spec"]["token"]}}})
        return b'{"status": {"allowed": true}}'

    async def stream(self, path: str, *, timeout: float = 30.0) -> Any:
        raise Unreachable("nothing is watched here")


class ThreadClock:
    """The seconds that this thread ran. Other processes read them in `shown`, whenever the loop has updated it."""

    def __init__(self, shown: Any) -> None:
        self._shown = shown

    def now(self) -> float:
        self._shown.value = found = time.thread_time()
        return found


class BusyScheduler:
    """A scheduler that always has something to decide: `feed` shows it pods, and deletes them when they ran."""

    def __init__(self, nodes: int, pods: int, clock: ThreadClock) -> None:
        self._clock = clock
        self.api, self.live = AllowingServer(), LiveApi(LiveAnswers())
        options = SchedulerOptions(loop=LoopOptions(spent=time.thread_time, on_decision=self.live.decisions.add))
        self.scheduler = Scheduler(
            load(CONFIG, BUILT_IN), BUILT_IN, self.api, WallClock(), random.Random(1), options=options
        )
        self.scheduler.watches = SimpleNamespace(unsynced=[], serves=lambda kind: False)  # type: ignore[assignment]
        self._numbers, self._ran = itertools.count(), deque[Json]()
        self._waiting: dict[str, Json] = {}
        self._see(kinds.NODES, ADDED, [node(i) for i in range(nodes)])
        self._see(kinds.PODS, ADDED, [plain(f"old-{i}", f"node-{i % nodes}") for i in range(pods)])
        self._see(kinds.PODS, ADDED, [_asking(f"large-{i}", f"{1_000 + i % 7}") for i in range(REFUSED)])

    async def feed(self) -> None:
        while True:
            self._ran += self._confirm()
            gone = [self._ran.popleft() for _ in range(len(self._ran) - KEPT)]
            self._see(kinds.PODS, DELETED, gone)
            new = [_asking(f"new-{i}", f"{100 + i % CLASSES}m") for i in self._next(WAITING - len(self._waiting))]
            self._waiting |= {each["metadata"]["name"]: each for each in new}
            self._see(kinds.PODS, ADDED, new)
            self._clock.now()
            await asyncio.sleep(0 if new or gone else 0.001)

    def spent(self) -> Spent:
        used = resource.getrusage(resource.RUSAGE_THREAD)
        copies = 0 if self.live.copies is None else self.live.copies.copies
        return Spent(self.scheduler.loop.decisions, self._clock.now(), used.ru_minflt, copies)

    def _next(self, count: int) -> list[int]:
        return [next(self._numbers) for _ in range(count)]

    def _confirm(self) -> list[Json]:
        """Shows the watch the pods that were bound."""
        bound = []
        while self.api.bound:
            name, where = self.api.bound.popleft()
            pod = self._waiting.pop(name, None)
            if pod is not None:
                pod["spec"]["nodeName"] = where
                bound.append(pod)
        self._see(kinds.PODS, MODIFIED, bound)
        return bound

    def _see(self, kind: ApiResource, what: str, some: list[Json]) -> None:
        handler = InformerHandler(self.scheduler.handlers, kind, self.scheduler.wakeup)
        for first in range(0, len(some), 250):
            lines = [msgspec.json.encode({"type": what, "object": each}) for each in some[first : first + 250]]
            handler.events(decode_watch_lines(lines, watch_target(kind).type).changes)


def _asking(name: str, cpu: str) -> Json:
    pod = plain(name)
    pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = cpu
    return pod


def serve(connection: Any, shown: Any, nodes: int, pods: int) -> None:
    """The scheduler's process: sends its port, and what was spent so far as often as it is asked."""

    async def life() -> None:
        clock = ThreadClock(shown)
        busy = BusyScheduler(nodes, pods, clock)
        gc_tuning.freeze_after_list()
        authorizer = RequestAuthorizer(busy.api, clock)
        content = ServedContent({}, Metrics().text, KubeSchedulerConfiguration(), clock, clock.now())
        add_routes, paths = busy.live.open(busy.scheduler, clock, authorizer)
        server = HttpServer(content, authorizer, add_routes, paths)
        port = await server.start_secure(LOCAL, 0, context_from_pem(make_self_signed(("localhost",), 2)))
        tasks = [asyncio.create_task(each) for each in (busy.scheduler.schedule(), busy.feed())]
        connection.send(port)
        with contextlib.suppress(EOFError):
            while await asyncio.to_thread(connection.recv):
                assert not any(each.done() for each in tasks), "the scheduler has ended"
                connection.send(busy.spent())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await busy.live.close()
        await server.stop()

    gc_tuning.freeze_after_import()
    with asyncio.Runner(loop_factory=loop_factory()) as runner:  # as the command does
        runner.run(life())


class Clients:
    """Clients that poll, and what-ifs. `shown` has the seconds that they live by. `answers` counts the statuses."""

    def __init__(self, session: aiohttp.ClientSession, url: str, shown: Any) -> None:
        self._session, self._url, self._shown = session, url, shown
        self.answers: Counter[str] = Counter()

    async def until(self, second: float) -> None:
        while self._shown.value < second:
            await asyncio.sleep(0.005)

    async def poll(self, number: int) -> None:
        """Asks for a page each second."""
        due = self._shown.value + random.Random(number).random()
        for page in itertools.islice(itertools.cycle(PAGES), number, None):
            await self.until(due)
            await self._ask("GET", page if page == "map" else f"{page}?limit=100", f"user-{number}")
            due = max(due + 1.0, self._shown.value)

    async def suppose(self, rate: int) -> None:
        """Asks so often a second where the pods of a manifest would go, whether or not earlier ones were answered."""
        pods = [_asking(f"what-{i}", "500m") | {"apiVersion": "v1", "kind": "Pod"} for i in range(4)]
        body = json.dumps({"manifest": json.dumps({"apiVersion": "v1", "kind": "List", "items": pods})}).encode()
        began = self._shown.value
        async with asyncio.TaskGroup() as tasks:
            for number in itertools.count():
                await self.until(began + number / rate)
                tasks.create_task(self._ask("POST", "whatif?namespace=default", f"planner-{number % rate}", body))

    async def _ask(self, method: str, what: str, user: str, body: bytes | None = None) -> None:
        headers = {"Authorization": f"Bearer {user}"}
        async with self._session.request(method, f"{self._url}/api/v1/{what}", headers=headers, data=body) as reply:
            await reply.read()
        self.answers[f"{what.partition('?')[0]} {reply.status}"] += 1


class Figures(NamedTuple):
    """Each phase as (with clients, without clients), and the statuses of the answers that the clients got."""

    phases: list[tuple[Spent, Spent]]
    answers: Counter[str]

    @property
    def ratio(self) -> float:
        return statistics.median(asked.rate / alone.rate for asked, alone in self.phases)


async def measure(server: Server, rounds: int, seconds: float, clients: int, whatifs: int) -> Figures:
    """`seconds` is how long a phase is."""
    trust = ssl.create_default_context()
    trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
    phases: list[tuple[Spent, Spent]] = []
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust, limit=0)) as session:
        asking = Clients(session, f"https://{LOCAL}:{server.port}", server.shown)

        async def phase(*, asked: bool) -> Spent:
            some = [asking.poll(i) for i in range(clients if asked else 0)]
            some += [asking.suppose(whatifs)] if asked else []
            tasks = [asyncio.create_task(each) for each in some]
            # Connections are opened, or the last copy of the phase before ends.
            await asking.until(server.shown.value + min(1.0, seconds))
            before = await server.spent()
            await asking.until(before.seconds + seconds)
            found = (await server.spent()).since(before)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            return found

        for number in range(rounds):
            both = {asked: await phase(asked=asked) for asked in ((True, False), (False, True))[number % 2]}
            phases.append((both[True], both[False]))
            click.echo(f"asked: {both[True].text()}   alone: {both[False].text()}")
    return Figures(phases, asking.answers)


@click.command()
@click.option("--nodes", default=5_000, show_default=True)
@click.option("--pods", default=20_000, show_default=True, help="Pods that run all the time.")
@click.option("--rounds", default=8, show_default=True, help="Pairs of phases.")
@click.option("--seconds", default=8.0, show_default=True, help="Of a phase.")
@click.option("--clients", default=50, show_default=True, help="That poll, each a page a second.")
@click.option("--whatifs", default=10, show_default=True, help="A second.")
def main(nodes: int, pods: int, rounds: int, seconds: float, clients: int, whatifs: int) -> None:
    """What questions of the live API cost the scheduling loop."""
    click.echo(machine())
    server = Server(nodes, pods)
    try:
        found = asyncio.run(measure(server, rounds, seconds, clients, whatifs))
    finally:
        server.stop()
    answers = ", ".join(f"{count} {which}" for which, count in sorted(found.answers.items()))
    click.echo(f"answers: {answers}")
    click.echo(f"decisions a second: {found.ratio:.2f} of those without clients (target {TARGET:g})")
    sys.exit(found.ratio < TARGET)


if __name__ == "__main__":
    main()
