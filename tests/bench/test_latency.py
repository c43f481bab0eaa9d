"""How waits of pods and gangs are taken and told; and a very small measurement, with all its processes."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import cast

import msgspec
import pytest
from click.testing import CliRunner

from bench.latency import report
from bench.latency.__main__ import main
from bench.latency.idle_machine import IdleMachine, look_at_machine
from bench.latency.load import LEAST, NAME, Load, Wait, member
from bench.latency.run import Latency, NotBound, Plan, by_the_clock
from bench.soak.lookout import Lookout, Seen
from kubenexus.api.codec import Unreadable
from kubenexus.client.calls import Call
from kubenexus.client.transport import ApiClient
from kubenexus.client.watch_events import WatchEvent
from kubenexus.sim.virtual.loop import run

PLAN = Plan(nodes=3, pods=2, rate=20.0, gangs=4, size=2, every=0.5, large=5, rush=3)


def waits(*milliseconds: float) -> list[Wait]:
    return [Wait(began=-1.0, last=0.0, bound=each / 1000) for each in milliseconds]


def test_a_wait_runs_from_the_last_create_to_the_last_bind() -> None:
    assert Wait(began=1.0, last=3.0, bound=3.5).seconds == pytest.approx(0.5)


@pytest.mark.parametrize(("percent", "found"), [(50, 30.0), (99, 40.0), (100, 40.0)])
def test_so_many_percent_did_not_wait_longer(percent: int, found: float) -> None:
    assert report.ms(waits(40, 10, 30, 20), percent) == pytest.approx(found)


@pytest.mark.parametrize(
    ("pods", "steady", "large", "kept"),
    [
        pytest.param([1, 2, 3], [10, 20, 30], [900], [True, True, True, True, True], id="all kept"),
        pytest.param([1, 6, 16], [10, 60, 160], [1100], [False, False, False, False, False], id="none kept"),
        pytest.param([1, 2, 16], [10, 20, 160], [900], [True, False, True, False, True], id="one was slow"),
        pytest.param([], [10, 20, 30], [900], [True, True, True], id="no single pods"),
    ],
)
def test_promises_are_judged(pods: list[float], steady: list[float], large: list[float], kept: list[bool]) -> None:
    found = Latency(PLAN, waits(*pods), waits(*steady), waits(*large), waits(5))
    assert [each.kept for each in report.judge(found)] == kept


def test_pods_that_kubelets_align_have_limits_of_their_own() -> None:
    found = Latency(PLAN._replace(numa=2), waits(7, 7, 24), waits(10), waits(10), waits(5))
    assert [(each.limit, each.kept) for each in report.judge(found)][:2] == [(8.0, True), (25.0, True)]


def test_pods_that_the_load_created_late_are_left_out_of_the_second_figure() -> None:
    starts = [number / PLAN.rate for number in range(100)]
    starts[50] += 0.1
    pods = [Wait(began=start, last=start, bound=start + (0.5 if start == starts[50] else 0.004)) for start in starts]
    found = Latency(PLAN, pods, waits(1), waits(1), waits(1))
    assert report.ms(found.pods, 99) == pytest.approx(500)
    assert report.on_time(found) == "95 of 100 pods were created on time: p50 4.0 ms, p99 4.0 ms"
    assert report.on_time(Latency(PLAN, [], waits(1), waits(1), waits(1))) == ""


def test_the_table_has_a_row_for_each_part() -> None:
    rows = report.table(Latency(PLAN, waits(2, 4), waits(10, 20), waits(30), waits(500, 600, 700))).splitlines()
    assert len({row.count("|") for row in rows}) == 1
    assert rows[2:] == [
        "| 2 | 1 | 20 a second | 4.0 | 4.0 | 4.0 | 1.00 |",
        "| 2 | 2 | one every 0.5 s | 20.0 | 20.0 | 20.0 | 1.02 |",
        "| 1 | 5 | one after the other | 30.0 | 30.0 | 30.0 | 1.03 |",
        "| 3 | 2 | at once | 600.0 | 700.0 | 700.0 | 1.70 |",
    ]


def test_members_of_a_gang_need_each_other() -> None:
    made = [member("steady-1", 8, number) for number in range(8)]
    assert {(pod["metadata"]["labels"][NAME], pod["metadata"]["labels"][LEAST]) for pod in made} == {("steady-1", "8")}
    assert len({pod["metadata"]["name"] for pod in made}) == 8


class Server:
    """Takes whatever it is sent."""

    def __init__(self, on_send: Callable[[], None] = lambda: None) -> None:
        self.sent, self._on_send = 0, on_send

    async def send(self, call: Call, *, timeout: float) -> bytes:
        self.sent += 1
        self._on_send()
        return b""


def seen(name: str, node: str) -> Seen:
    return msgspec.convert({"metadata": {"name": name}, "spec": {"nodeName": node}}, Seen)


def test_the_lookout_tells_of_pods_that_are_there_and_can_be_read() -> None:
    told: list[str] = []
    lookout = Lookout(lambda pod: told.append(pod.metadata.name))
    lookout.list_started()
    lookout.list_page([seen("a", ""), seen("b", "n")], ())
    lookout.list_finished()
    bad = Unreadable("Pod", "default", "c")
    news = [WatchEvent("MODIFIED", seen("a", "n")), WatchEvent("DELETED", seen("b", "n")), WatchEvent("ADDED", bad)]
    lookout.events(news)
    assert told == ["a", "b", "a"]


def test_a_gang_is_bound_when_each_of_its_members_is() -> None:
    async def story() -> tuple[bool, Wait]:
        server = Server()
        load = Load(cast(ApiClient, server))
        gang = asyncio.create_task(load.gang("g", 2))
        while server.sent < 2:
            await asyncio.sleep(0)
        for news in (seen("g-0", "n1"), seen("g-0", "n1"), seen("g-1", ""), seen("other-1", "n1")):
            load.see(news)
        done, _ = await asyncio.wait({gang}, timeout=0)
        load.see(seen("g-1", "n2"))
        return bool(done), await gang

    early, wait = asyncio.run(story())
    assert not early
    assert wait.began <= wait.last <= wait.bound


def test_pods_come_by_the_clock_whether_those_before_are_bound_or_not() -> None:
    async def story() -> list[float]:
        loop, moments, all_sent = asyncio.get_running_loop(), list[float](), asyncio.Event()

        def sent() -> None:
            moments.append(loop.time())
            if len(moments) == 4:
                all_sent.set()

        load = Load(cast(ApiClient, Server(sent)))
        pods = asyncio.create_task(by_the_clock(load, PLAN._replace(pods=4, rate=100.0)))
        await all_sent.wait()
        for number in range(4):
            load.see(seen(f"single-{number}-0", "n1"))
        assert len(await pods) == 4
        return [moment - moments[0] for moment in moments]

    assert run(story()) == pytest.approx([0.0, 0.01, 0.02, 0.03])


def test_gangs_that_are_left_without_nodes_end_it_with_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    async def measure(folder: Path, plan: Plan) -> Latency:
        async with asyncio.TaskGroup():  # as the watch is beside it
            raise NotBound("pods are not bound after 120 s")

    monkeypatch.setattr("bench.latency.__main__.measure", measure)
    done = CliRunner().invoke(main, [])
    assert (done.exit_code, done.stderr) == (1, "Error: pods are not bound after 120 s\n")


@pytest.mark.parametrize("numa", [0, 2], ids=["plain pods", "pods that kubelets align"])
def test_a_small_measurement_runs_to_its_end(tmp_path: Path, numa: int) -> None:
    pods, gangs = ["--pods", "6", "--rate", "100"], ["--gangs", "3", "--size", "2", "--every", "0.05"]
    wanted = ["--nodes", "5", *pods, *gangs, "--large", "4", "--rush", "5", f"--numa={numa}"]
    file = tmp_path / "latency.json"
    done = CliRunner().invoke(main, [*wanted, f"--json={file}"], catch_exceptions=False)
    assert done.exit_code == 0
    found = json.loads(file.read_text())["found"]
    assert [len(found[part]) for part in ("pods", "steady", "large", "rush")] == [6, 3, 5, 5]
    assert all(each["began"] < each["last"] < each["bound"] for each in found["steady"])
    assert all(each["began"] <= each["last"] < each["bound"] for each in found["pods"])
    assert "| 6 | 1 | 100 a second |" in done.output
    assert "pod created to bound, ms: p99 of 6" in done.output
    assert "| 5 | 2 | at once |" in done.output
    assert "p99 of 3 gangs" in done.output


def test_the_machine_alone_is_measured_before() -> None:
    found = look_at_machine(sleeps=3, loop=1000)
    assert found.late_p99 >= found.late_p50
    assert found.loop > 0
    assert IdleMachine(0.1, 4.0, 55.0).sentence() == (
        "before the load: a sleep of 5 ms ends late by p50 0.10 ms, p99 4.00 ms; a million additions take 55 ms"
    )
