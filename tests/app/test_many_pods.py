"""Many small jobs that come without end, each where others are wanted, too: the one large gang among them starts."""

import random

import pytest

from kubenexus.api.core import Pod
from kubenexus.framework.aging import Aging
from kubenexus.testing.builders import a_node, a_pod
from tests.api.gangs.builders import a_member
from tests.app.decision_fixture import DecisionFixture

CYCLE, WAITING = 10.0, 12  # seconds; small jobs that wait at any time
NODES, WANTED = 8, 6  # the large one wants so many of them for itself
POOLS = ({"a": "yes"}, {"a": "yes", "b": "yes"}, {"b": "yes", "c": "yes"}, {"c": "yes"})  # they overlap
PLACES: tuple[dict[str, str], ...] = ({}, {"a": "yes"}, {"b": "yes"}, {"c": "yes"})


class Crowd:
    """Eight nodes that small jobs of this priority keep busy; who ends is replaced at once."""

    def __init__(self, seed: int, priority: int, fixture: DecisionFixture) -> None:
        self.dice, self.priority, self.fixture, self.made = random.Random(seed), priority, fixture, 0
        fixture.nodes(*(a_node(f"n{i}", cpu=4, labels=POOLS[i % len(POOLS)]) for i in range(NODES)))
        self.come()
        fixture.work()
        self.come()

    @property
    def waiting(self) -> set[str]:
        return {_job(pod.metadata.name) for pod in self.fixture.pods.values() if not pod.spec.node_name} - {"large"}

    def come(self) -> None:
        for _ in range(WAITING - len(self.waiting)):
            self.fixture.come(*self.small())

    def small(self) -> list[Pod]:
        self.made += 1
        name, size, dice = f"small{self.made}", self.dice.randint(1, 3), self.dice
        cpu, place = dice.randint(1, 3), dice.choice(PLACES)
        if size == 1:
            return [a_pod(f"{name}-0", cpu=cpu, priority=self.priority, selects=place)]
        members = [f"{name}-{i}" for i in range(size)]
        return [a_member(each, name, size, cpu=cpu, priority=self.priority, selects=place) for each in members]

    def cycle(self) -> None:
        """A quarter of those that run end."""
        running = sorted({_job(pod) for pod in self.fixture.where("small")})
        over = set(self.dice.sample(running, max(1, len(running) // 4)) if running else ())
        self.fixture.end(*(pod for pod in self.fixture.where("small") if _job(pod) in over))
        self.come()
        self.fixture.clock.advance(CYCLE)
        self.fixture.work()


def _job(pod: str) -> str:
    return pod.partition("-")[0]


def cycles_until_large_runs(crowd: Crowd, most: int) -> int | None:
    fixture = crowd.fixture
    fixture.come(*(a_member(f"large-{i}", "large", WANTED, cpu=4) for i in range(WANTED)))
    fixture.work()
    for count in range(most):
        if fixture.where("large"):
            assert len(fixture.where("large")) == WANTED
            return count
        crowd.cycle()
    return None


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("priority", "minutes"),
    [
        pytest.param(0, 10, id="as urgent as the large one"),
        pytest.param(-10, 3, id="less urgent"),
    ],
)
def test_f57_a_large_gang_starts_in_a_crowd_of_small_jobs(priority: int, minutes: int, seed: int) -> None:
    crowd = Crowd(seed, priority, DecisionFixture())
    assert cycles_until_large_runs(crowd, most=int(minutes * 60 / CYCLE)) is not None
    assert len(crowd.waiting) >= WAITING / 2, "the crowd is there"


@pytest.mark.parametrize(
    ("priority", "patience", "aging"),
    [
        pytest.param(0, 0.0, Aging(), id="nothing is kept for it"),
        pytest.param(150, 300.0, Aging(), id="nothing is kept from those with more priority, however long it waits"),
    ],
)
def test_f57_what_it_owes_that_to(priority: int, patience: float, aging: Aging | None) -> None:
    assert cycles_until_large_runs(Crowd(0, priority, DecisionFixture(patience, aging)), most=90) is None
