"""Whatever goes wrong between us and the server, in whatever order: no pod is lost, none counts where it is not, and no
node is overbooked. Hypothesis looks for an order in which that fails."""

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kubenexus.queue.queued_job import QueueState
from kubenexus.state.pods import PodStage
from kubenexus.testing.builders import a_node, a_pod
from kubenexus.testing.harness import on_node
from tests.app.scheduler_fixture import ANYWHERE, SchedulerFixture, Step, play
from tests.bind.server import AWAY

CPUS = 3
STEP = st.one_of(
    st.tuples(st.just("pod"), st.integers(0, 7)),
    st.tuples(st.just("delete"), st.integers(0, 7)),
    st.tuples(st.just("delete unheard"), st.integers(0, 7)),
    st.tuples(st.just("node"), st.integers(0, 1)),
    st.tuples(st.just("node gone"), st.integers(0, 1)),
    st.tuples(st.just("look fails"), st.just(None)),
    st.tuples(st.just("somebody binds"), st.integers(0, 7)),
    *ANYWHERE,
)


class Chaos:
    def __init__(self) -> None:
        self.fixture = SchedulerFixture()
        self.made = Counter[int]()

    async def step(self, what: str, which: Any) -> None:
        if not await self.fixture.step(what, which):
            self._here(what, which)

    def _here(self, what: str, which: Any) -> None:
        fixture = self.fixture
        match what:
            case "pod" if f"default/p{which}" not in fixture.server.pods:
                self.made[which] += 1
                fixture.pods(a_pod(f"p{which}", cpu=1, uid=f"{which} for the {self.made[which]}. time"))
            case "delete":
                fixture.delete(f"default/p{which}")
            case "delete unheard":
                fixture.server.pods.pop(f"default/p{which}", None)
            case "node":
                fixture.nodes(a_node(f"n{which}", cpu=CPUS))
            case "node gone":
                self._drain(f"n{which}")
            case "look fails":
                fixture.server.looks.append(AWAY)
            case "somebody binds":
                self._somebody_binds(f"default/p{which}")

    def _somebody_binds(self, key: str) -> None:
        """Where there is room by what the server says; we may think otherwise at this moment."""
        fixture, pod = self.fixture, self.fixture.server.pods.get(key)
        taken = Counter(each.spec.node_name for each in fixture.server.pods.values())
        held = Counter(record.node for record in fixture.ledger.pods.values())
        free = [name for name in fixture.ledger.nodes.row_of if taken[name] < CPUS and held[name] < CPUS]
        if pod is not None and not pod.spec.node_name and free:
            fixture.server.pods[key] = on_node(pod, free[0])

    def _drain(self, node: str) -> None:
        for key, pod in list(self.fixture.server.pods.items()):
            if pod.spec.node_name == node:
                self.fixture.delete(key)
        self.fixture.handlers.on_node_delete(node)

    async def calm_down(self) -> None:
        """All is well from here on."""
        fixture = self.fixture
        fixture.server.script.clear()
        fixture.server.looks.clear()
        for name in ("n0", "n1"):
            fixture.nodes(a_node(name, cpu=CPUS))
        await fixture.calm_down()

    def check(self) -> None:
        fixture = self.fixture
        truth = fixture.bound()
        assert fixture.where() == truth, "what counts is what is"
        assert fixture.ledger.assumed == sum(each.stage is PodStage.ASSUMED for each in fixture.ledger.pods.values())
        assert max(Counter(truth.values()).values(), default=0) <= CPUS, "no node is overbooked"
        for key, pod in fixture.server.pods.items():
            if not pod.spec.node_name:
                assert fixture.queue.state(key) in (QueueState.UNSCHEDULABLE, QueueState.BACKOFF), f"{key} is lost"
                assert len(truth) == 2 * CPUS, f"{key} waits, and there is room"
        assert len(fixture.queue) == len(fixture.server.pods) - len(truth)
        assert fixture.scheduler.dispatcher.open_count == 0


@given(st.lists(STEP, max_size=40))
def test_no_pod_is_lost_and_no_node_overbooked(steps: list[Step]) -> None:
    play(Chaos, steps)
