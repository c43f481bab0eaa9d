"""A whole scheduler and a whole cluster in virtual time."""

import asyncio

import msgspec
import pytest

from kubenexus.client import kinds, verbs
from kubenexus.sim.kubelets.agent_runner import AgentRunner
from kubenexus.sim.kubelets.agents import Agents, AgentSettings
from kubenexus.sim.virtual.decisions import DecisionLog
from kubenexus.sim.virtual.pod_tracker import TrackedPod
from kubenexus.sim.virtual.simulation import Simulation
from tests.sim.virtual.simulation_fixture import add_node, add_pod, placed, play
from tests.sim.virtual.virtual_time import elapse


def has_node(entry: TrackedPod) -> bool:
    return entry.placed


async def ten_pods(simulation: Simulation) -> dict[str, str]:
    for number in range(3):
        add_node(simulation, f"n{number}")
    for _ in range(10):
        add_pod(simulation)
    assert await simulation.tracker.until(list(simulation.tracker.pods), has_node, 60) == []
    return placed(simulation)


def test_pods_get_nodes() -> None:
    assert sorted(play(ten_pods).values()).count("n0") in (3, 4)


def test_the_same_seed_gives_the_same_log() -> None:
    logs: list[list[str]] = [[], [], []]
    seeds = (1, 1, 2)
    for lines, seed in zip(logs, seeds, strict=True):
        play(ten_pods, DecisionLog(lines.append), seed=seed)
    assert logs[0] == logs[1] != logs[2]
    assert len(logs[0]) == 10
    assert logs[0][0].endswith("\n")


def test_a_refusal_is_a_decision_too() -> None:
    lines: list[str] = []
    why = (
        "0/1 nodes are available: 1 Insufficient cpu. "
        "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    )

    async def scenario(simulation: Simulation) -> None:
        add_node(simulation, "small", cpu="1")
        add_pod(simulation, "big", cpu="2")
        await simulation.tracker.until(["default/big"], lambda entry: entry.attempted, 60)
        assert simulation.tracker.pods["default/big"].why == why

    log = DecisionLog(lines.append)
    play(scenario, log)
    assert (log.placed, log.refused) == (0, 1)
    assert lines[0].partition(" ")[2] == f"default/big refused: {why}\n"


def test_an_hour_later_the_watches_still_tell() -> None:
    """They end every few minutes and are opened again."""

    async def scenario(simulation: Simulation) -> tuple[dict[str, str], float]:
        await elapse(3600)
        add_node(simulation, "late")
        add_pod(simulation, "later")
        left = await simulation.tracker.until(["default/later"], has_node, 60)
        assert not left
        return placed(simulation), simulation.seconds

    where, seconds = play(scenario)
    assert where == {"default/later": "late"}
    assert seconds < 3600 + 60


def test_a_pod_that_waits_is_placed_when_there_is_room() -> None:
    async def scenario(simulation: Simulation) -> float:
        add_pod(simulation, "early")
        assert await simulation.tracker.until(["default/early"], has_node, 30) == ["default/early"]
        add_node(simulation, "late")
        assert await simulation.tracker.until(["default/early"], has_node, 30) == []
        return simulation.seconds

    assert 30 < play(scenario) < 45


def test_a_call_takes_its_time() -> None:
    async def scenario(simulation: Simulation) -> float:
        add_node(simulation, "n")
        add_pod(simulation, "p")
        began = simulation.seconds
        await simulation.tracker.until(["default/p"], has_node, 30)
        return simulation.seconds - began

    assert play(scenario, latency=0.25) == pytest.approx(0.25)
    assert play(scenario, latency=0.0) == 0.0


def test_a_task_that_breaks_ends_the_play() -> None:
    async def scenario(simulation: Simulation) -> None:
        def broken(*_: object) -> None:
            raise ZeroDivisionError("a mistake of ours")

        simulation.scheduler.queue.tick = broken  # type: ignore[method-assign]
        add_pod(simulation, "p")
        await elapse(3600)

    with pytest.raises(ExceptionGroup) as caught:
        play(scenario)
    assert caught.group_contains(ZeroDivisionError, match="a mistake of ours")


def test_what_fails_in_the_scenario_is_told_as_it_is() -> None:
    async def scenario(simulation: Simulation) -> None:
        raise LookupError("the scenario's own")

    with pytest.raises(LookupError, match="the scenario's own"):
        play(scenario)


def test_agents_run_pods_on_its_nodes() -> None:
    """The same agents that play kubelets on a real server: an hour of work takes no time."""

    async def scenario(simulation: Simulation) -> dict[str, object]:
        agents = Agents(AgentSettings(run=3600.0, all_nodes=True))
        working = asyncio.ensure_future(AgentRunner(simulation.api, agents, simulation.clock, rng=simulation.rng).run())
        add_node(simulation, "n")
        add_pod(simulation, "job")
        await elapse(3700)
        working.cancel()
        answer = simulation.api.now(verbs.get(kinds.PODS, "default", "job"))
        found: dict[str, object] = msgspec.json.decode(answer.body)["status"]
        return found

    assert play(scenario, without=())["phase"] == "Succeeded"


@pytest.mark.parametrize(
    ("grace", "seconds"),
    [pytest.param(5, 5.0, id="its own grace period"), pytest.param(None, 30.0, id="the usual one")],
)
def test_a_deleted_pod_ends_when_its_grace_period_is_over(grace: int | None, seconds: float) -> None:
    async def scenario(simulation: Simulation) -> None:
        add_node(simulation, "n")
        add_pod(simulation, "p")
        (key,) = simulation.tracker.pods
        assert await simulation.tracker.until([key], has_node, 60) == []
        simulation.api.now(verbs.delete(kinds.PODS, "default", "p", "", grace_seconds=grace))
        began = simulation.seconds
        assert await simulation.tracker.until([key], lambda entry: False, 60) == []
        assert simulation.seconds - began == pytest.approx(seconds)

    play(scenario)
