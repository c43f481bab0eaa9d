"""Whatever goes wrong between us and the server, in whatever order: no pod is lost, none counts where it is not, and no
node is overbooked. Hypothesis looks for an order in which that fails."""

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kubenexus.queue.entry import Place
from kubenexus.state.pods import Stage
from kubenexus.testing.builders import a_node, a_pod
from kubenexus.testing.harness import on_node
from tests.app.town import ANYWHERE, Step, Town, play
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
        self.town = Town()
        self.made = Counter[int]()

    async def step(self, what: str, which: Any) -> None:
        if not await self.town.step(what, which):
            self._here(what, which)

    def _here(self, what: str, which: Any) -> None:
        town = self.town
        match what:
            case "pod" if f"default/p{which}" not in town.server.pods:
                self.made[which] += 1
                town.pods(a_pod(f"p{which}", cpu=1, uid=f"{which} for the {self.made[which]}. time"))
            case "delete":
                town.delete(f"default/p{which}")
            case "delete unheard":
                town.server.pods.pop(f"default/p{which}", None)
            case "node":
                town.nodes(a_node(f"n{which}", cpu=CPUS))
            case "node gone":
                self._drain(f"n{which}")
            case "look fails":
                town.server.looks.append(AWAY)
            case "somebody binds":
                self._somebody_binds(f"default/p{which}")

    def _somebody_binds(self, key: str) -> None:
        """Where there is room by what the server says; we may think otherwise at this moment."""
        town, pod = self.town, self.town.server.pods.get(key)
        taken = Counter(each.spec.node_name for each in town.server.pods.values())
        held = Counter(record.node for record in town.ledger.pods.values())
        free = [name for name in town.ledger.nodes.row_of if taken[name] < CPUS and held[name] < CPUS]
        if pod is not None and not pod.spec.node_name and free:
            town.server.pods[key] = on_node(pod, free[0])

    def _drain(self, node: str) -> None:
        for key, pod in list(self.town.server.pods.items()):
            if pod.spec.node_name == node:
                self.town.delete(key)
        self.town.feed.node_gone(node)

    async def calm_down(self) -> None:
        """All is well from here on."""
        town = self.town
        town.server.script.clear()
        town.server.looks.clear()
        for name in ("n0", "n1"):
            town.nodes(a_node(name, cpu=CPUS))
        await town.calm_down()

    def check(self) -> None:
        town = self.town
        truth = town.bound()
        assert town.where() == truth, "what counts is what is"
        assert town.ledger.assumed == sum(each.stage is Stage.ASSUMED for each in town.ledger.pods.values())
        assert max(Counter(truth.values()).values(), default=0) <= CPUS, "no node is overbooked"
        for key, pod in town.server.pods.items():
            if not pod.spec.node_name:
                assert town.room.place(key) in (Place.UNSCHEDULABLE, Place.BACKOFF), f"{key} is lost"
                assert len(truth) == 2 * CPUS, f"{key} waits, and there is room"
        assert len(town.room) == len(town.server.pods) - len(truth)
        assert town.scheduler.dispatcher.open == 0


@given(st.lists(STEP, max_size=40))
def test_no_pod_is_lost_and_no_node_overbooked(steps: list[Step]) -> None:
    play(Chaos, steps)
