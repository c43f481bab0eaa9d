"""What the embedded API server can take: `python -m bench.server [--memory]`.

Speed: pods of 2 KB are created, bound and get a status, with three watchers, by one client with 64 requests under way,
over loopback HTTP; in the same run the same client posts the same bodies to a bare aiohttp handler. Client and servers
are processes of their own. Memory: 10,000 nodes and 100,000 pods.
"""

import argparse
import asyncio
import json
import multiprocessing
import random
import resource
import time
from collections.abc import Awaitable, Callable, Iterator
from multiprocessing.connection import Connection as Pipe
from typing import Any

from aiohttp import web

from kubenexus.base.clock import WallClock
from kubenexus.sim.apiserver.http_types import Request
from kubenexus.sim.apiserver.listening import listen
from kubenexus.sim.apiserver.server import ApiServer

IN_FLIGHT = 64
WATCHERS = 3
PODS = "/api/v1/namespaces/default/pods"
MERGE = "application/merge-patch+json"


def pod(name: str) -> bytes:
    """About 2 KB, as real ones are."""
    variables = [{"name": f"SETTING_{n}", "value": f"value-{n}-of-something"} for n in range(16)]
    amounts = {"requests": {"cpu": "250m", "memory": "256Mi"}, "limits": {"cpu": "1", "memory": "1Gi"}}
    container: dict[str, Any] = {"name": "main", "image": "registry.example.com/team/service:1.2.3", "env": variables}
    container |= {"resources": amounts, "ports": [{"containerPort": 8080, "name": "http"}]}
    labels = {f"team.example.com/label-{n}": f"value-{n}" for n in range(8)}
    spec: dict[str, Any] = {"containers": [container], "nodeSelector": {"kubernetes.io/os": "linux"}}
    spec["tolerations"] = [{"key": "dedicated", "operator": "Equal", "value": "batch", "effect": "NoSchedule"}]
    return json.dumps({"metadata": {"name": name, "labels": labels}, "spec": spec}).encode()


STATUS = json.dumps(
    {
        "status": {
            "phase": "Running",
            "podIP": "10.1.2.3",
            "conditions": [{"type": each, "status": "True"} for each in ("Initialized", "Ready", "ContainersReady")],
        }
    }
).encode()


# ---- servers, each in a process of its own ---------------------------------------------------------------------------


async def _serve_ours(pipe: Pipe) -> None:
    listener = await listen(ApiServer(WallClock(), random.Random(1)), "127.0.0.1", 0)
    pipe.send(listener.port)
    await asyncio.Event().wait()


async def _serve_bare(pipe: Pipe) -> None:
    async def take(request: web.Request) -> web.Response:
        return web.Response(body=await request.read(), content_type="application/json", status=201)

    app = web.Application()
    app.router.add_post("/{tail:.*}", take)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    pipe.send(runner.addresses[0][1])
    await asyncio.Event().wait()


def _in_loop(main: Callable[[Pipe], Awaitable[None]], pipe: Pipe) -> None:
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(pipe))  # type: ignore[arg-type]


class Served:
    def __init__(self, main: Callable[[Pipe], Awaitable[None]]) -> None:
        here, there = multiprocessing.Pipe()
        self._process = multiprocessing.Process(target=_in_loop, args=(main, there), daemon=True)
        self._process.start()
        self.port: int = here.recv()

    def stop(self) -> None:
        self._process.terminate()
        self._process.join()


# ---- the client ------------------------------------------------------------------------------------------------------


class Talk:
    """One connection, plain and quick, so that the server is what is measured."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def open(cls, port: int) -> "Talk":
        return cls(*await asyncio.open_connection("127.0.0.1", port, limit=2**20))

    async def ask(self, method: str, path: str, body: bytes, content: str = "application/json") -> int:
        head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {content}\r\nContent-Length: {len(body)}\r\n\r\n"
        self._writer.write(head.encode() + body)
        answer = await self._reader.readuntil(b"\r\n\r\n")
        lowered = answer.lower()
        at = lowered.index(b"content-length: ") + 16
        await self._reader.readexactly(int(lowered[at : lowered.index(b"\r\n", at)]))
        return int(answer[9:12])


async def _watch(port: int, heard: list[int]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**22)
    writer.write(f"GET {PODS}?watch=1 HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    while data := await reader.read(2**20):
        heard[0] += data.count(b',"object":')


async def _all(port: int, one: Callable[[Talk, str], Awaitable[None]], names: list[str]) -> float:
    """Seconds for all of them, so many at a time."""
    waiting: Iterator[str] = iter(names)
    talks = [await Talk.open(port) for _ in range(IN_FLIGHT)]

    async def work(talk: Talk) -> None:
        for name in waiting:
            await one(talk, name)

    start = time.perf_counter()
    await asyncio.gather(*(work(talk) for talk in talks))
    return time.perf_counter() - start


async def _bare(talk: Talk, name: str) -> None:
    assert await talk.ask("POST", PODS, pod(name)) == 201


async def _life(talk: Talk, name: str) -> None:
    assert await talk.ask("POST", PODS, pod(name)) == 201
    binding = b'{"metadata":{"name":"%b"},"target":{"kind":"Node","name":"n1"}}' % name.encode()
    assert await talk.ask("POST", f"{PODS}/{name}/binding", binding) == 201
    assert await talk.ask("PATCH", f"{PODS}/{name}/status", STATUS, MERGE) == 200


async def _speed(bare: int, ours: int, count: int) -> dict[str, Any]:
    heard = [0]
    names = [f"pod-{n:06}" for n in range(count)]
    await _all(bare, _bare, names[:500])
    alone = 3 * count / await _all(bare, _bare, names * 3)
    watchers = [asyncio.create_task(_watch(ours, heard)) for _ in range(WATCHERS)]
    await asyncio.sleep(0.2)
    seconds = await _all(ours, _life, names)
    await asyncio.sleep(0.5)
    for each in watchers:
        each.cancel()
    lives = count / seconds
    return {
        "bare aiohttp POST/s": round(alone),
        "our requests/s": round(3 * lives),
        "pods/s (create, bind, status)": round(lives),
        "requests against bare": round(3 * lives / alone, 2),
        "pods against bare": round(lives / alone, 2),
        "events heard": heard[0],
        "events expected": 3 * WATCHERS * count,
    }


def speed(count: int) -> dict[str, Any]:
    bare, ours = Served(_serve_bare), Served(_serve_ours)
    try:
        import uvloop

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(_speed(bare.port, ours.port, count))
    finally:
        bare.stop()
        ours.stop()


def memory(nodes: int, pods: int) -> dict[str, Any]:
    """In this process, without HTTP: what the store takes."""
    server = ApiServer(WallClock(), random.Random(1))
    for n in range(nodes):
        capacity = {"cpu": "64", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": "8"}
        labels = {f"example.com/label-{k}": f"value-{k}" for k in range(20)}
        node = {"metadata": {"name": f"node-{n}", "labels": labels}, "status": {"capacity": capacity}}
        assert server.handle(Request("POST", "/api/v1/nodes", json.dumps(node).encode())).code == 201
    for n in range(pods):
        assert server.handle(Request("POST", PODS, pod(f"pod-{n:06}"))).code == 201
    start = time.perf_counter()
    listed = server.handle(Request("GET", PODS)).body
    chosen = server.handle(Request("GET", f"{PODS}?fieldSelector=spec.nodeName%3Dn1")).body
    seconds = time.perf_counter() - start
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "nodes": nodes,
        "pods": pods,
        "peak MB": round(most),
        "list MB": round(len(listed) / 2**20),
        "both lists, s": round(seconds, 2),
        "selected bytes": len(chosen),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=5000)
    parser.add_argument("--memory", action="store_true")
    said = parser.parse_args()
    found = memory(10_000, 100_000) if said.memory else speed(said.pods)
    for name, value in found.items():
        print(f"{name:32} {value}")


if __name__ == "__main__":
    main()
