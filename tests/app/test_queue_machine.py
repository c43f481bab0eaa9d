"""Whatever goes wrong between us and the server while queues come, change and go: what queues use is what runs, and no
job waits that its limits and the nodes admit."""

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kubenexus.testing.builders import a_node, a_pod
from tests.app.scheduler_fixture import ANYWHERE, SchedulerFixture, Step, play
from tests.state.queues.queue_objects import a_queue, added_up, used

CPUS = 3
NAMESPACES = ("a", "b", "c")
QUEUES = ("ml", "web")
POD = st.tuples(st.sampled_from(NAMESPACES), st.integers(0, 3))
LIMIT = st.tuples(st.sampled_from(QUEUES), st.sampled_from(NAMESPACES), st.one_of(st.none(), st.integers(0, 3)))
STEP = st.one_of(
    st.tuples(st.just("pod"), POD),
    st.tuples(st.just("pod"), POD),
    st.tuples(st.just("delete"), POD),
    st.tuples(st.just("delete unheard"), POD),
    st.tuples(st.just("queue"), LIMIT),
    st.tuples(st.just("no queue"), st.sampled_from(QUEUES)),
    st.tuples(st.just("node"), st.integers(0, 1)),
    *ANYWHERE,
)


class Chaos:
    def __init__(self) -> None:
        self.fixture = SchedulerFixture()
        self.made = Counter[str]()

    async def step(self, what: str, which: Any) -> None:
        if not await self.fixture.step(what, which):
            self._here(what, which)

    def _here(self, what: str, which: Any) -> None:
        fixture = self.fixture
        match what:
            case "pod":
                namespace, number = which
                key = f"{namespace}/{namespace}{number}"
                if key not in fixture.server.pods:
                    self.made[key] += 1
                    uid = f"{key} for the {self.made[key]}. time"
                    fixture.pods(a_pod(f"{namespace}{number}", namespace=namespace, cpu=1 + number % 2, uid=uid))
            case "delete":
                fixture.delete(f"{which[0]}/{which[0]}{which[1]}")
            case "delete unheard":
                fixture.server.pods.pop(f"{which[0]}/{which[0]}{which[1]}", None)
            case "queue":
                name, namespace, limit = which
                spec = {} if limit is None else {"limit": {"cpu": limit}}
                fixture.ledger.queues.set_queue(a_queue(name, namespaces=[namespace], **spec))
            case "no queue":
                fixture.ledger.queues.remove_queue(which)
            case "node":
                fixture.nodes(a_node(f"n{which}", cpu=CPUS))

    async def calm_down(self) -> None:
        """All is well from here on."""
        fixture = self.fixture
        fixture.server.script.clear()
        for name in ("n0", "n1"):
            fixture.nodes(a_node(name, cpu=CPUS))
        await fixture.calm_down()

    def check(self) -> None:
        fixture, tree = self.fixture, self.fixture.ledger.queues
        assert fixture.where() == fixture.bound()
        if tree.is_active:
            assert used(fixture.ledger) == added_up(fixture.ledger)
        assert len(fixture.queue) == len(fixture.server.pods) - len(fixture.bound())
        assert fixture.scheduler.dispatcher.open_count == 0
        taken = Counter[str]()
        for record in fixture.ledger.pods.values():
            taken[record.node] += dict(record.footprint.amounts)["cpu"]
        free = max(CPUS * 1000 - taken[name] for name in ("n0", "n1"))
        for key, pod in fixture.server.pods.items():
            asked = (1 + int(pod.metadata.name[1:]) % 2) * 1000
            limit = tree.reached_limit(pod.metadata.namespace, (("cpu", asked),), 1) if tree.is_active else None
            if not pod.spec.node_name:
                assert limit is not None or asked > free, f"{key} waits, and there is room"


@given(st.lists(STEP, max_size=30))
def test_queues_use_what_runs_and_no_job_waits_for_nothing(steps: list[Step]) -> None:
    play(Chaos, steps)
