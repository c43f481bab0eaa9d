"""Gangs, whatever goes wrong between us and the server: no decision takes half of one, and when all is well again each
gang that is there runs whole, and of each that is not nobody new was started."""

from collections import Counter
from functools import partial
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kubenexus.api.core import Pod
from kubenexus.app.job_committer import PORTION
from kubenexus.app.scheduler import SchedulerOptions
from kubenexus.app.scheduling_loop import LoopOptions
from kubenexus.framework.decision import Decision
from kubenexus.framework.job import Job
from kubenexus.queue.queued_job import QueueState
from kubenexus.testing.builders import a_node
from kubenexus.testing.harness import on_node
from tests.api.gangs.builders import a_member
from tests.app.scheduler_fixture import ANYWHERE, SchedulerFixture, Step, play

LEAST = {"a": 2, "b": 3}
MEMBER = st.tuples(st.sampled_from("ab"), st.integers(0, 4))
STEP = st.one_of(
    st.tuples(st.just("member"), MEMBER),
    st.tuples(st.just("member"), MEMBER),
    st.tuples(st.just("ungated"), MEMBER),
    st.tuples(st.just("delete"), MEMBER),
    st.tuples(st.just("delete unheard"), MEMBER),
    st.tuples(st.just("somebody binds"), MEMBER),
    *ANYWHERE,
)


class Chaos:
    def __init__(self, portion: int = PORTION) -> None:
        settings = SchedulerOptions(host="here", loop=LoopOptions(portion=portion))
        self.fixture, self.made = SchedulerFixture(settings=settings), Counter[str]()
        self.halves: list[str] = []
        self.fixture.nodes(a_node("n", cpu=100))
        for planner in self.fixture.scheduler.planners.values():
            planner.decide = self._witnessed(planner.decide)  # type: ignore[method-assign]

    def _witnessed(self, decide: Any) -> Any:
        """No decision takes fewer than the gang needs: with those that are there, by the server's or our own word."""

        def decided(job: Job, *rest: Any, **named: Any) -> Decision:
            decision: Decision = decide(job, *rest, **named)
            if decision.placed:
                gang = job.pods[0].metadata.name[0]
                there = [r for r in self.fixture.ledger.pods.values() if r.name.startswith(gang) and not r.terminating]
                if len(there) + len(decision.placements) < LEAST[gang]:
                    self.halves.append(f"{len(decision.placements)} of {gang} beside {len(there)}")
            return decision

        return decided

    def pod(self, gang: str, number: int, *, gated: bool = False) -> Pod:
        name = f"{gang}{number}"
        uid = f"{name} for the {self.made[name]}. time"
        return a_member(name, gang, LEAST[gang], cpu=1, uid=uid, gates=["kueue"] if gated else [])

    async def step(self, what: str, which: Any) -> None:
        if not await self.fixture.step(what, which):
            self._to_a_member(what, *which)

    def _to_a_member(self, what: str, gang: str, number: int) -> None:
        fixture, name = self.fixture, f"{gang}{number}"
        here = fixture.server.pods.get(f"default/{name}")
        match what:
            case "member" if here is None:
                self.made[name] += 1
                fixture.pods(self.pod(gang, number, gated=number == 4))
            case "ungated" if here is not None and here.spec.scheduling_gates:
                fixture.pods(self.pod(gang, number))
            case "delete":
                fixture.delete(f"default/{name}")
            case "delete unheard":
                fixture.server.pods.pop(f"default/{name}", None)
            case "somebody binds" if here is not None and not here.spec.node_name and not here.spec.scheduling_gates:
                fixture.server.pods[here.key] = on_node(here, "n")

    async def calm_down(self) -> None:
        self.fixture.server.script.clear()
        await self.fixture.calm_down()
        await self.fixture.work()

    def check(self) -> None:
        fixture = self.fixture
        assert self.halves == []
        for gang, least in LEAST.items():
            live = [pod for pod in fixture.server.pods.values() if pod.metadata.name.startswith(gang)]
            ready = [pod for pod in live if not pod.spec.scheduling_gates]
            waiting = [pod for pod in ready if not pod.spec.node_name]
            state = fixture.queue.state(f"default/gang/{gang}")
            if len(ready) >= least:
                assert not waiting, f"{gang} is complete, and some of it wait: {state}"
            if not waiting:
                assert state is QueueState.GONE
            else:
                assert state is QueueState.GATED
        assert fixture.where() == fixture.bound(), "what counts is what is"
        assert fixture.scheduler.dispatcher.open_count == 0


@given(st.lists(STEP, max_size=40))
def test_gangs_run_whole_when_all_is_well_again(steps: list[Step]) -> None:
    play(Chaos, steps)


@given(st.lists(STEP, max_size=40))
def test_the_same_when_anything_may_happen_between_two_members_that_are_committed(steps: list[Step]) -> None:
    play(partial(Chaos, portion=1), steps)
