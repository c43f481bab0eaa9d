"""A ledger that miscounts is found out within a round: put right, counted and told once, and nobody waits in vain."""

import logging
from typing import Any

import pytest

from kubenexus.api.core import Node
from kubenexus.app.auditor import LONGEST, NODES, ROUND, Auditor
from kubenexus.sim.box import background
from kubenexus.state.audit import Miscount
from kubenexus.state.ledger import Ledger
from kubenexus.state.resources import CPU
from kubenexus.testing.builders import a_node, a_pod
from tests.app.town import Town, in_town
from tests.sim.virtual.passing import elapse


def corrections(town: Town) -> float:
    return town.scheduler.metrics.ledger_corrections.at().value


def spoil(town: Town, node: str, cpu: int = 7000) -> None:
    """As if pods had left that the ledger still counts."""
    nodes = town.ledger.nodes
    nodes.resources.used[CPU, nodes.row_of[node]] += cpu
    nodes.use_changed(nodes.row_of[node])


def told(caplog: pytest.LogCaptureFixture) -> list[Any]:
    return [record.keys for record in caplog.records if record.name == "kubenexus.auditor"]  # type: ignore[attr-defined]


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
    async def life(town: Town) -> None:
        town.nodes(*(a_node(f"n{i}", cpu=8) for i in range(20)))
        for i in range(20):
            spoil(town, f"n{i}", cpu=8000 if i == 13 else 0)
        town.pods(*(a_pod(f"p{i}", cpu=8) for i in range(20)))
        await town.work()
        assert len(town.where()) == 19, "one is refused, for a node that only looks full"
        async with background(town.scheduler.loop.run()), background(_audit(town)):
            await elapse(ROUND)
        assert town.where().keys() == {f"p{i}" for i in range(20)}
        assert town.ledger.on_node("n13")
        assert corrections(town) == 1
        said = {"nodes": ["n13"], "counters": ["cpu used: held 8000, recounted 0"]}
        assert told(caplog) == [said]

    with caplog.at_level(logging.ERROR):
        in_town(life)


async def _audit(town: Town) -> None:
    await town.scheduler.auditor.run(town.scheduler.loop.wake)


def test_a_standby_is_audited_too() -> None:
    """Nothing decides here: it will, with this ledger."""

    async def life(town: Town) -> None:
        town.guard.leads = False
        town.nodes(a_node("n", cpu=8))
        spoil(town, "n")
        async with background(_audit(town)):
            await elapse(LONGEST + 1)
        assert (corrections(town), town.ledger.nodes.resources.used.item(CPU, 0)) == (1, 0)

    in_town(life)


def test_a_ledger_that_is_right_is_left_alone_and_wakes_nobody(caplog: pytest.LogCaptureFixture) -> None:
    async def life(town: Town) -> None:
        town.nodes(a_node("n", cpu=8))
        town.pods(a_pod("fits", cpu=1), a_pod("too-large", cpu=99), a_pod("near", near=["app=web per zone"]))
        await town.work()
        generation, woken = town.ledger.generation, list[bool]()
        async with background(town.scheduler.auditor.run(lambda: woken.append(True))):
            await elapse(ROUND)
        assert (town.ledger.generation, woken, corrections(town)) == (generation, [], 0)
        assert await town.work() == 0, "nobody was moved"

    with caplog.at_level(logging.ERROR):
        in_town(life)
    assert told(caplog) == []


def test_of_5000_nodes_a_step_looks_at_a_few_and_a_round_at_all_in_ten_minutes() -> None:
    async def life(town: Town) -> None:
        names = [f"n{i}" for i in range(5000)]
        town.nodes(*map(a_node, names))
        looks = Looks(town.ledger)
        auditor = Auditor(looks, town.feed.known.nodes, town.room, town.scheduler.metrics)  # type: ignore[arg-type]
        seconds, seen = 0.0, 0
        while seen < len(names):
            seconds += auditor.pause
            auditor.step()
            assert 0 < len(looks.names) - seen <= NODES
            seen = len(looks.names)
        assert looks.names == names
        assert seconds == pytest.approx(ROUND)
        auditor.step()
        assert looks.names[5000:] == names[:NODES], "and from the beginning"

    in_town(life)


def test_nodes_come_and_go_during_a_round() -> None:
    async def life(town: Town) -> None:
        town.nodes(*(a_node(f"n{i}", cpu=8) for i in range(NODES + 2)))
        looks = Looks(town.ledger)
        auditor = Auditor(looks, town.feed.known.nodes, town.room, town.scheduler.metrics)  # type: ignore[arg-type]
        auditor.step()
        town.feed.node_gone(f"n{NODES}")
        town.nodes(a_node("new", cpu=8))
        auditor.step()
        assert looks.names[NODES:] == [f"n{NODES + 1}"], "the new one has its turn in the next round"
        auditor.step()
        auditor.step()
        assert "new" in looks.names

    in_town(life)


def test_without_nodes_there_is_nothing_to_do() -> None:
    async def life(town: Town) -> None:
        assert not town.scheduler.auditor.step()
        assert town.scheduler.auditor.pause == LONGEST

    in_town(life)


def test_a_count_of_pods_over_all_nodes_is_looked_at_too(caplog: pytest.LogCaptureFixture) -> None:
    """A pod that must be near others is refused for a count that lost them."""

    async def life(town: Town) -> None:
        town.nodes(a_node("n", cpu=8, zone="a"))
        town.pods(a_pod("web", labels={"app": "web"}, node="n"), a_pod("wish", near=["app=nobody per zone"]))
        await town.work()
        (question,) = town.ledger.nodes.pods.questions
        town.ledger.nodes.pods.counter(question).add(0, +1)
        assert town.scheduler.auditor.step()
        assert not town.scheduler.auditor.step()
        assert corrections(town) == 1
        (said,) = told(caplog)
        assert said["counters"][0] == "pods with app=nobody: held 1, recounted 0"
        assert said["nodes"] == ["n"]
        assert await town.work() == 1, "it was woken"

    with caplog.at_level(logging.ERROR):
        in_town(life)


def test_an_audit_that_breaks_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Looks):
        def audit(self, node: Node) -> list[Miscount]:
            if node.metadata.name == "n0":
                raise RuntimeError("a mistake of ours")
            return super().audit(node)

    async def life(town: Town) -> None:
        town.nodes(a_node("n0"), a_node("n1"))
        looks = Broken(town.ledger)
        auditor = Auditor(looks, town.feed.known.nodes, town.room, town.scheduler.metrics)  # type: ignore[arg-type]
        assert not auditor.step()
        assert looks.names == ["n1"]

    with caplog.at_level(logging.ERROR):
        in_town(life)
    assert [said["err"] for said in told(caplog)] == ["a mistake of ours"]
