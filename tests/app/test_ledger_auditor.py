"""A ledger that miscounts is found out within a round: put right, counted and told once, and nobody waits in vain."""

import logging
from typing import Any

import pytest

from kubenexus.api.core import Node
from kubenexus.app.ledger_auditor import MAX_PAUSE, NODES, ROUND, LedgerAuditor
from kubenexus.sim.embedded_cluster import run_in_background
from kubenexus.state.audit import Miscount
from kubenexus.state.ledger import Ledger
from kubenexus.state.resources import CPU
from kubenexus.testing.builders import a_node, a_pod
from tests.app.scheduler_fixture import SchedulerFixture, scheduler_test
from tests.sim.virtual.virtual_time import elapse


def corrections(fixture: SchedulerFixture) -> float:
    return fixture.scheduler.metrics.ledger_corrections.labels().value


def spoil(fixture: SchedulerFixture, node: str, cpu: int = 7000) -> None:
    """As if pods had left that the ledger still counts."""
    nodes = fixture.ledger.nodes
    nodes.resources.used[CPU, nodes.row_of[node]] += cpu
    nodes.usage_changed(nodes.row_of[node])


def told(caplog: pytest.LogCaptureFixture) -> list[Any]:
    return [record.keys for record in caplog.records if record.name == "kubenexus.ledger_auditor"]  # type: ignore[attr-defined]


class Looks:
    """A ledger that says what it was asked about."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger, self.nodes, self.names = ledger, ledger.nodes, list[str]()

    def audit(self, node: Node) -> list[Miscount]:
        self.names.append(node.metadata.name)
        return self._ledger.audit(node)


def test_a_miscounted_node_is_put_right_within_a_round_and_who_was_refused_for_it_is_woken(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(*(a_node(f"n{i}", cpu=8) for i in range(20)))
        for i in range(20):
            spoil(fixture, f"n{i}", cpu=8000 if i == 13 else 0)
        fixture.pods(*(a_pod(f"p{i}", cpu=8) for i in range(20)))
        await fixture.work()
        assert len(fixture.where()) == 19, "one is refused, for a node that only looks full"
        async with run_in_background(fixture.scheduler.loop.run()), run_in_background(_audit(fixture)):
            await elapse(ROUND)
        assert fixture.where().keys() == {f"p{i}" for i in range(20)}
        assert fixture.ledger.on_node("n13")
        assert corrections(fixture) == 1
        said = {"nodes": ["n13"], "counters": ["cpu used: held 8000, recounted 0"]}
        assert told(caplog) == [said]

    with caplog.at_level(logging.ERROR):
        scheduler_test(life)


def auditor_of(fixture: SchedulerFixture, ledger: Any) -> LedgerAuditor:
    scheduler = fixture.scheduler
    return LedgerAuditor(ledger, scheduler.cache.nodes, scheduler.queue, scheduler.metrics, scheduler.wakeup)


async def _audit(fixture: SchedulerFixture) -> None:
    await fixture.scheduler.ledger_auditor.run()


def test_a_standby_is_audited_too() -> None:
    """Nothing decides here: it will, with this ledger."""

    async def life(fixture: SchedulerFixture) -> None:
        fixture.guard.leads = False
        fixture.nodes(a_node("n", cpu=8))
        spoil(fixture, "n")
        async with run_in_background(_audit(fixture)):
            await elapse(MAX_PAUSE + 1)
        assert (corrections(fixture), fixture.ledger.nodes.resources.used.item(CPU, 0)) == (1, 0)

    scheduler_test(life)


def test_a_ledger_that_is_right_is_left_alone_and_wakes_nobody(caplog: pytest.LogCaptureFixture) -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=8))
        fixture.pods(a_pod("fits", cpu=1), a_pod("too-large", cpu=99), a_pod("near", near=["app=web per zone"]))
        await fixture.work()
        generation, woken = fixture.ledger.generation, list[bool]()
        fixture.scheduler.wakeup.set = lambda: woken.append(True)  # type: ignore[method-assign]
        async with run_in_background(fixture.scheduler.ledger_auditor.run()):
            await elapse(ROUND)
        assert (fixture.ledger.generation, woken, corrections(fixture)) == (generation, [], 0)
        assert await fixture.work() == 0, "nobody was moved"

    with caplog.at_level(logging.ERROR):
        scheduler_test(life)
    assert told(caplog) == []


def test_of_5000_nodes_a_step_looks_at_a_few_and_a_round_at_all_in_ten_minutes() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        names = [f"n{i}" for i in range(5000)]
        fixture.nodes(*map(a_node, names))
        looks = Looks(fixture.ledger)
        ledger_auditor = auditor_of(fixture, looks)
        seconds, seen = 0.0, 0
        while seen < len(names):
            seconds += ledger_auditor.pause
            ledger_auditor.step()
            assert 0 < len(looks.names) - seen <= NODES
            seen = len(looks.names)
        assert looks.names == names
        assert seconds == pytest.approx(ROUND)
        ledger_auditor.step()
        assert looks.names[5000:] == names[:NODES], "and from the beginning"

    scheduler_test(life)


def test_nodes_come_and_go_during_a_round() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(*(a_node(f"n{i}", cpu=8) for i in range(NODES + 2)))
        looks = Looks(fixture.ledger)
        ledger_auditor = auditor_of(fixture, looks)
        ledger_auditor.step()
        fixture.handlers.on_node_delete(f"n{NODES}")
        fixture.nodes(a_node("new", cpu=8))
        ledger_auditor.step()
        assert looks.names[NODES:] == [f"n{NODES + 1}"], "the new one has its turn in the next round"
        ledger_auditor.step()
        ledger_auditor.step()
        assert "new" in looks.names

    scheduler_test(life)


def test_without_nodes_there_is_nothing_to_do() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        assert not fixture.scheduler.ledger_auditor.step()
        assert fixture.scheduler.ledger_auditor.pause == MAX_PAUSE

    scheduler_test(life)


def test_a_count_of_pods_over_all_nodes_is_looked_at_too(caplog: pytest.LogCaptureFixture) -> None:
    """A pod that must be near others is refused for a count that lost them."""

    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=8, zone="a"))
        fixture.pods(a_pod("web", labels={"app": "web"}, node="n"), a_pod("wish", near=["app=nobody per zone"]))
        await fixture.work()
        (question,) = fixture.ledger.nodes.pods.queries
        fixture.ledger.nodes.pods.counter(question).add(0, +1)
        assert fixture.scheduler.ledger_auditor.step()
        assert not fixture.scheduler.ledger_auditor.step()
        assert corrections(fixture) == 1
        (said,) = told(caplog)
        assert said["counters"][0] == "pods with app=nobody: held 1, recounted 0"
        assert said["nodes"] == ["n"]
        assert await fixture.work() == 1, "it was woken"

    with caplog.at_level(logging.ERROR):
        scheduler_test(life)


def test_an_audit_that_breaks_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Looks):
        def audit(self, node: Node) -> list[Miscount]:
            if node.metadata.name == "n0":
                raise RuntimeError("a mistake of ours")
            return super().audit(node)

    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n0"), a_node("n1"))
        looks = Broken(fixture.ledger)
        ledger_auditor = auditor_of(fixture, looks)
        assert not ledger_auditor.step()
        assert looks.names == ["n1"]

    with caplog.at_level(logging.ERROR):
        scheduler_test(life)
    assert [said["err"] for said in told(caplog)] == ["a mistake of ours"]
