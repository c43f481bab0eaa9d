"""How soon the admission webhook answers, over TLS: `python -m bench.webhook`, a minute.

Requests come by the clock, as many a second as asked for, and the wait of each begins when it was due: a server that
falls behind cannot slow the clock down. Every other second the same reviews go to a plain aiohttp handler that reads
them and returns a constant: its waits are those of the machine, of TLS, of aiohttp and of the load. Each server is a
process of its own. The exit code is 1 if the webhook's 99th percentile is above the target.
"""

import asyncio
import contextlib
import itertools
import json
import multiprocessing
import random
import ssl
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, NamedTuple

import aiohttp
import click
import msgspec
from aiohttp import web

from bench.latency.idle_machine import look_at_machine
from bench.report import machine
from kubenexus.app.http.serving_certificates import context_from_pem, make_self_signed
from kubenexus.base.clock import WallClock
from kubenexus.base.gc_tuning import freeze_after_import
from kubenexus.cli.interrupts import loop_factory
from kubenexus.client.calls import Call, Unreachable
from kubenexus.webhook.admission import ALLOWED, encode_review
from kubenexus.webhook.namespaces import NamespaceLabels
from kubenexus.webhook.server import MAX_BODY, WebhookServer, WebhookSettings

LOCAL = "127.0.0.1"
TARGET_MS = 10.0
GANG = "pod-group.scheduling.kubenexus.io"
WARM_UP = 10  # requests on each connection that are not counted: caches are filled
ON_TIME_MS = 1.0  # a request that the load sends later than that shows how busy the machine is, not the webhook


COLUMNS = ("p50", "p90", "p99", "p99.9", "longest", "p99 of those sent on time", "CPU of the server")

Stop = Callable[[], Awaitable[None]]


class Waits(msgspec.Struct, frozen=True):
    """Milliseconds from the moment a request was due to its answer, and how many failed. `on_time` has the count and
    the 99th percentile of those requests that the load itself sent on time."""

    count: int
    failed: int
    p50: float
    p90: float
    p99: float
    p999: float
    most: float
    on_time: tuple[int, float]


def bodies(rng: random.Random) -> Iterator[tuple[str, bytes]]:
    """Paths and reviews: mostly pods of 8 KB, with gangs, jobs and wrong values among them."""
    shapes = [(60, plain), (25, member), (10, job), (5, wrong)]
    weights = [weight for weight, _ in shapes]
    for number in range(1_000_000):
        (make,) = rng.choices([shape for _, shape in shapes], weights)
        path, kind, group, data = make(number)
        request = {"uid": f"u-{number}", "kind": {"group": group, "version": "v1", "kind": kind}, "object": data}
        request |= {"operation": "CREATE", "namespace": "ml"}
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
        yield path, json.dumps(review).encode()


def pod(number: int, labels: dict[str, str]) -> Any:
    env = [{"name": f"VARIABLE_{i}", "value": f"value of {i} in pod {number}"} for i in range(40)]
    fields: Any = {f"f:VARIABLE_{i}": {".": {}, "f:name": {}, "f:value": {}} for i in range(60)}
    metadata: Any = {"name": f"p{number}", "labels": {"app": "web"} | labels}
    metadata["managedFields"] = [{"manager": "kubectl", "fieldsV1": {"f:spec": fields}}]
    requests = {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"}
    return {
        "metadata": metadata,
        "spec": {"containers": [{"name": "m", "env": env, "resources": {"limits": requests}}]},
    }


def plain(number: int) -> tuple[str, str, str, Any]:
    return "/validate", "Pod", "", pod(number, {})


def member(number: int) -> tuple[str, str, str, Any]:
    labels = {f"{GANG}/name": f"g{number // 8}", f"{GANG}/min-available": "8", "workload.kubenexus.io/type": "training"}
    return "/validate", "Pod", "", pod(number, labels)


def job(number: int) -> tuple[str, str, str, Any]:
    metadata = {"name": f"j{number}", "annotations": {"kubenexus.io/gang-scheduling": "true"}}
    return (
        "/mutate/gang",
        "Job",
        "batch",
        {"metadata": metadata, "spec": {"parallelism": 8, "template": pod(number, {})}},
    )


def wrong(number: int) -> tuple[str, str, str, Any]:
    labels = {"workload.kubenexus.io/type": "trainign", "workload.kubenexus.io/tpye": "x"}
    return "/validate", "Pod", "", pod(number, labels)


class NoApi:
    """The API server of a webhook that needs none."""

    async def send(self, call: Call, *, timeout: float = 10.0) -> bytes:
        raise Unreachable("there is none")


async def start_webhook(context: ssl.SSLContext) -> tuple[int, Stop]:
    """Starts the webhook as the command does. Returns its port, and what stops it."""
    server = WebhookServer(WebhookSettings(), NamespaceLabels(NoApi(), WallClock()), {})
    return await server.start(LOCAL, 0, context), server.stop


async def start_constant(context: ssl.SSLContext) -> tuple[int, Stop]:
    """Starts a server that reads a review and returns always the same. Returns its port, and what stops it."""
    body = encode_review("u-0", ALLOWED)

    async def answer(request: web.Request) -> web.Response:
        await request.read()
        return web.Response(body=body, content_type="application/json")

    application = web.Application(client_max_size=MAX_BODY)
    application.router.add_post("/{path:.*}", answer)
    runner = web.AppRunner(application, access_log=None, handle_signals=False)
    await runner.setup()
    await web.TCPSite(runner, LOCAL, 0, ssl_context=context).start()
    return int(runner.addresses[0][1]), runner.cleanup


SERVERS = {"webhook": start_webhook, "constant answer": start_constant}


def serve(connection: Any, name: str) -> None:
    """The process of a server: sends its port, and when it is asked to end, the CPU seconds that it took."""

    async def life() -> None:
        port, stop = await SERVERS[name](context_from_pem(make_self_signed(("localhost",), 2)))
        connection.send(port)
        freeze_after_import()
        before = time.process_time()
        with contextlib.suppress(EOFError):
            await asyncio.to_thread(connection.recv)
        connection.send(time.process_time() - before)
        await stop()

    with asyncio.Runner(loop_factory=loop_factory()) as runner:  # as the command does
        runner.run(life())


class Load:
    """Sends reviews to servers by the clock, and notes how long each answer took."""

    def __init__(self, session: aiohttp.ClientSession, ports: Sequence[int]) -> None:
        self._session, self._ports = session, ports
        # By server: how late a request was sent, and how long it took from when it was due.
        self._waits: list[list[tuple[float, float]]] = [[] for _ in ports]
        self._failed = [0] * len(ports)

    async def warm_up(self, review: tuple[str, bytes], connections: int) -> None:
        """Opens the connections, and fills caches."""
        for _ in range(WARM_UP):
            now = time.perf_counter()
            places = [number for number in range(len(self._ports)) for _ in range(connections)]
            await asyncio.gather(*(self._send(place, review, now, counts=False) for place in places))

    async def send_all(self, reviews: Sequence[tuple[str, bytes]], rate: float) -> None:
        """Sends all reviews to each server, in turns of a second."""
        places = len(self._ports)
        turn = max(1, int(rate))
        order = [
            (place, review)
            for first in range(0, len(reviews), turn)
            for place in range(places)
            for review in reviews[first : first + turn]
        ]
        began, tasks = time.perf_counter(), []
        for number, (place, review) in enumerate(order):
            due = began + number / rate
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            tasks.append(asyncio.ensure_future(self._send(place, review, due)))
        await asyncio.gather(*tasks)

    def summaries(self) -> list[Waits]:
        return [summary(waits, failed) for waits, failed in zip(self._waits, self._failed, strict=True)]

    async def _send(self, place: int, review: tuple[str, bytes], due: float, *, counts: bool = True) -> None:
        late = (time.perf_counter() - due) * 1e3
        path, body = review
        async with self._session.post(f"https://{LOCAL}:{self._ports[place]}{path}", data=body) as answer:
            await answer.read()
        self._failed[place] += answer.status != 200
        if counts:
            self._waits[place].append((late, (time.perf_counter() - due) * 1e3))


async def measure(ports: Sequence[int], rate: float, count: int, connections: int, seed: int = 1) -> list[Waits]:
    """Sends `count` reviews to each server at this rate. Returns how long they waited, by server."""
    trust = ssl.create_default_context()
    trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
    reviews = list(itertools.islice(bodies(random.Random(seed)), count))
    connector = aiohttp.TCPConnector(ssl=trust, limit=0, limit_per_host=connections)
    async with aiohttp.ClientSession(connector=connector) as session:
        load = Load(session, ports)
        await load.warm_up(reviews[0], connections)
        await load.send_all(reviews, rate)
        return load.summaries()


def summary(waits: list[tuple[float, float]], failed: int) -> Waits:
    """Returns the figures of requests, each with how late it was sent and how long it waited."""
    ordered = sorted(wait for _, wait in waits)
    on_time = sorted(wait for late, wait in waits if late <= ON_TIME_MS)
    p50, p90, p99, p999, most = (_at(ordered, share) for share in (0.5, 0.9, 0.99, 0.999, 1.0))
    return Waits(len(ordered), failed, p50, p90, p99, p999, most, (len(on_time), _at(on_time, 0.99)))


def _at(ordered: list[float], share: float) -> float:
    return round(ordered[min(int(len(ordered) * share), len(ordered) - 1)], 2) if ordered else 0.0


class Served(NamedTuple):
    """A server's process, and our end of its pipe."""

    process: Any
    connection: Any
    port: int

    def end(self) -> float:
        """Ends it, and returns the CPU seconds that it took."""
        self.connection.send("end")
        cpu = float(self.connection.recv())
        self.process.join(20)
        return cpu


def started(name: str) -> Served:
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs, name), daemon=True)
    process.start()
    return Served(process, ours, ours.recv())


def row(name: str, found: Waits, cpu_ms: float) -> str:
    count, on_time = found.on_time
    shares = [f"{each:g}" for each in (found.p50, found.p90, found.p99, found.p999, found.most)]
    return f"| {' | '.join((name, *shares, f'{on_time:g} ({count} of {found.count})', f'{cpu_ms:.2f}'))} |"


@click.command()
@click.option("--rate", type=click.FloatRange(1), default=500.0, show_default=True, help="Requests a second.")
@click.option("--seconds", type=click.FloatRange(0.1), default=30.0, show_default=True, help="For each server.")
@click.option("--connections", type=click.IntRange(1), default=32, show_default=True)
def main(rate: float, seconds: float, connections: int) -> None:
    """How soon the webhook answers when requests come by the clock."""
    click.echo(machine())
    click.echo(look_at_machine().sentence())
    servers = [started(name) for name in SERVERS]
    found = asyncio.run(measure([each.port for each in servers], rate, int(rate * seconds), connections))
    requests = int(rate * seconds) + WARM_UP * connections
    spent = [each.end() / requests * 1e3 for each in servers]
    ours, constant = found
    click.echo(
        f"{ours.count} reviews to each server, {rate:g} a second, in turns; {ours.failed} failed. Milliseconds:\n"
    )
    click.echo(f"| server | {' | '.join(COLUMNS)} |\n|{'---|' * (len(COLUMNS) + 1)}")
    for name, waits, cpu in zip(SERVERS, found, spent, strict=True):
        click.echo(row(name, waits, cpu))
    beside = f"{ours.p99 - constant.p99:+.2f} ms beside the constant answer"
    click.echo(f"\nthe webhook's p99 is {ours.p99:g} ms, the target {TARGET_MS:g}; {beside}")
    sys.exit(ours.failed > 0 or ours.p99 > TARGET_MS)


if __name__ == "__main__":
    main()
