"""How soon the admission webhook answers, over TLS: `python -m bench.webhook`, half a minute.

Requests come by the clock, as many a second as asked for, and the wait of each begins when it was due: a server that
falls behind cannot slow the clock down. The server is a process of its own. The exit code is 1 if the 99th percentile
is above the target.
"""

import asyncio
import contextlib
import json
import multiprocessing
import random
import ssl
import sys
import time
from collections.abc import Iterator
from typing import Any

import aiohttp
import click
import msgspec

from bench.latency.idle_machine import look_at_machine
from bench.report import machine
from kubenexus.app.http.serving_certificates import context_from_pem, make_self_signed
from kubenexus.base.clock import WallClock
from kubenexus.base.gc_tuning import freeze_after_import
from kubenexus.cli.interrupts import loop_factory
from kubenexus.client.calls import Call, Unreachable
from kubenexus.webhook.namespaces import NamespaceLabels
from kubenexus.webhook.server import WebhookServer, WebhookSettings

LOCAL = "127.0.0.1"
TARGET_MS = 10.0
GANG = "pod-group.scheduling.kubenexus.io"
WARM_UP = 200  # requests that are not counted: caches are filled
ON_TIME_MS = 1.0  # a request that the load sends later than that shows how busy the machine is, not the webhook


class Waits(msgspec.Struct, frozen=True):
    """Milliseconds from the moment a request was due to its answer, and how many failed. `on_time` has the count and
    the 99th percentile of those requests that the load itself sent on time."""

    count: int
    failed: int
    p50: float
    p99: float
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


def serve(connection: Any) -> None:
    """The server's process: sends its port, and when it is asked to end, the CPU seconds that it took."""

    async def life() -> None:
        clock = WallClock()
        server = WebhookServer(WebhookSettings(), NamespaceLabels(NoApi(), clock), {})
        context = context_from_pem(make_self_signed(("localhost",), 2))
        connection.send(await server.start(LOCAL, 0, context))
        freeze_after_import()
        before = time.process_time()
        with contextlib.suppress(EOFError):
            await asyncio.to_thread(connection.recv)
        connection.send(time.process_time() - before)
        await server.stop()

    with asyncio.Runner(loop_factory=loop_factory()) as runner:  # as the command does
        runner.run(life())


async def measure(port: int, rate: float, count: int, connections: int, seed: int = 1) -> Waits:
    """Sends `count` reviews at this rate and returns how long they waited."""
    trust = ssl.create_default_context()
    trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
    reviews = bodies(random.Random(seed))
    prepared = [next(reviews) for _ in range(count + WARM_UP)]
    waits: list[tuple[float, float]] = []  # how late it was sent, and how long it took from when it was due
    failed = 0
    connector = aiohttp.TCPConnector(ssl=trust, limit=connections)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def send(path: str, body: bytes, due: float, counts: bool) -> None:
            nonlocal failed
            late = (time.perf_counter() - due) * 1e3
            async with session.post(f"https://{LOCAL}:{port}{path}", data=body) as answer:
                await answer.read()
            failed += answer.status != 200
            if counts:
                waits.append((late, (time.perf_counter() - due) * 1e3))

        await asyncio.gather(*(send(*prepared[0], time.perf_counter(), False) for _ in range(connections)))
        began, tasks = time.perf_counter(), []
        for number, (path, body) in enumerate(prepared):
            due = began + number / rate
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            tasks.append(asyncio.ensure_future(send(path, body, due, number >= WARM_UP)))
        await asyncio.gather(*tasks)
    return summary(waits, failed)


def summary(waits: list[tuple[float, float]], failed: int) -> Waits:
    """Returns the figures of requests, each with how late it was sent and how long it waited."""
    ordered = sorted(wait for _, wait in waits)
    on_time = sorted(wait for late, wait in waits if late <= ON_TIME_MS)
    p50, p99, most = (_at(ordered, share) for share in (0.5, 0.99, 1.0))
    return Waits(len(ordered), failed, p50, p99, most, (len(on_time), _at(on_time, 0.99)))


def _at(ordered: list[float], share: float) -> float:
    return round(ordered[min(int(len(ordered) * share), len(ordered) - 1)], 2) if ordered else 0.0


@click.command()
@click.option("--rate", type=click.FloatRange(1), default=500.0, show_default=True, help="Requests a second.")
@click.option("--seconds", type=click.FloatRange(0.1), default=30.0, show_default=True)
@click.option("--connections", type=click.IntRange(1), default=32, show_default=True)
def main(rate: float, seconds: float, connections: int) -> None:
    """How soon the webhook answers when requests come by the clock."""
    click.echo(machine())
    click.echo(look_at_machine().sentence())
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs,), daemon=True)
    process.start()
    found = asyncio.run(measure(ours.recv(), rate, int(rate * seconds), connections))
    ours.send("end")
    cpu = ours.recv() / (found.count + WARM_UP + connections) * 1e3
    process.join(20)
    click.echo(f"{found.count} reviews at {rate:g} a second, {found.failed} failed")
    click.echo(f"p50 {found.p50:g} ms, p99 {found.p99:g} ms (target {TARGET_MS:g}), longest {found.most:g} ms")
    count, p99 = found.on_time
    click.echo(f"of the {count} that the load sent on time: p99 {p99:g} ms")
    click.echo(f"{cpu:.2f} ms of CPU for each in the server")
    sys.exit(found.failed > 0 or found.p99 > TARGET_MS)


if __name__ == "__main__":
    main()
