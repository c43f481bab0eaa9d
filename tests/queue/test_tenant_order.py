"""Tenants in the queue: a boost counts among jobs of one priority, those of a tenant go in the order they came, and a
tenant that gets another tier is sorted again."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.api.core import Pod
from kubenexus.framework.aging import Aging
from tests.queue.queue_fixture import QueueFixture, a_gang

AGING = Aging(threshold=60.0, boost=100, ceiling=1000)


class Town:
    """A queue, and what the jobs of each namespace count more."""

    def __init__(self, aging: Aging | None = None, **boosts: int) -> None:
        self.boosts = dict(boosts)
        self.fixture = QueueFixture(sign=self._sign, scope=self._boost, boost=self._boost)
        self.fixture.profile.aging = aging
        self.queue, self.clock = self.fixture.queue, self.fixture.clock

    def _boost(self, pod: Pod) -> int:
        return self.boosts.get(pod.metadata.namespace, 0)

    def _sign(self, pod: Pod) -> bytes:
        return f"{pod.spec.containers[0].image} {self._boost(pod)}".encode()

    def add(self, name: str, namespace: str, **fields: Any) -> str:
        return self.fixture.add(name, namespace=namespace, **{"kind": "app", **fields})

    def change(self, namespace: str, boost: int) -> None:
        self.boosts[namespace] = boost
        self.queue.on_tenant_change(namespace)


def test_jobs_of_one_priority_go_by_boost_and_then_first_come_first_served() -> None:
    town = Town(gold=20, silver=10)
    for number, namespace in enumerate(["bronze", "silver", "gold", "bronze", "gold", "silver"]):
        town.add(f"{namespace}-{number}", namespace, since=float(number))
    assert town.fixture.popped() == ["gold-2", "gold-4", "silver-1", "silver-5", "bronze-0", "bronze-3"]


@pytest.mark.parametrize("priority", [1, 5, 15])
def test_no_boost_comes_before_more_priority(priority: int) -> None:
    town = Town(gold=20)
    gold, urgent = town.add("gold", "gold"), town.add("urgent", "bronze", priority=priority)
    first, second = town.queue.rank(urgent), town.queue.rank(gold)
    assert first is not None
    assert second is not None
    assert first < second, "and it may keep no room from it"
    assert town.fixture.popped() == ["urgent", "gold"]


def test_who_has_waited_for_a_threshold_goes_before_a_boost() -> None:
    town = Town(AGING, gold=20)
    town.add("old", "bronze")
    town.clock.advance(60.0)
    town.add("gold", "gold")
    assert town.fixture.popped() == ["old", "gold"]


def test_of_those_that_have_waited_as_long_the_boost_counts() -> None:
    town = Town(AGING, gold=20)
    town.add("old", "bronze")
    town.clock.advance(1.0)
    town.add("gold", "gold")
    town.clock.advance(59.0)
    assert town.queue.is_before("bronze/old", "gold/gold"), "one second earlier"
    town.clock.advance(1.0)
    assert town.fixture.popped() == ["gold", "old"]


def test_a_namespace_may_count_less_than_others() -> None:
    town = Town(batch=-5)
    town.add("batch", "batch", since=0.0)
    town.add("web", "web", since=1.0)
    assert town.fixture.popped() == ["web", "batch"]


def test_a_gang_counts_as_its_first_member() -> None:
    town = Town(gold=20)
    town.add("web", "bronze", since=0.0)
    town.queue.add(a_gang("llama", 3, namespace="gold"), since=1.0)
    assert town.fixture.popped() == ["llama", "web"]


def test_a_tenant_that_gets_another_tier_is_sorted_again_though_others_are_before_it() -> None:
    """All are of one class until then."""
    town = Town()
    for number in range(6):
        town.add(f"p{number}", "ab"[number % 2], since=float(number))
    assert len(town.queue._job_classes) == 1
    town.change("b", 20)
    assert town.fixture.popped() == ["p1", "p3", "p5", "p0", "p2", "p4"]


def test_a_refused_job_keeps_its_refusal_and_is_sorted_by_its_new_tier_when_it_is_woken() -> None:
    from tests.queue.queue_fixture import NODE

    town = Town()
    for name in "ab":
        town.add(name, name, since=0.0)
    town.fixture.refuse("Room")
    town.change("b", 20)
    assert town.fixture.popped() == []
    town.clock.advance(60.0)
    town.fixture.happens(NODE)
    assert town.fixture.popped() == ["b", "a"]


Steps = list[tuple[str, int, str, int, int]]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["add", "add", "add", "change", "pop", "delete"]),
        st.integers(0, 2),  # hundreds of priority
        st.sampled_from("abc"),  # the namespace
        st.sampled_from([-5, 0, 10, 20]),
        st.integers(0, 70),  # seconds
    ),
    max_size=40,
)


@given(STEPS, st.booleans())
def test_the_order_is_that_of_a_sorted_list(steps: Steps, ages: bool) -> None:
    town = Town(AGING if ages else None)
    waiting: dict[str, tuple[int, str, float]] = {}

    def first(now: float) -> str:
        def key(name: str) -> tuple[float, ...]:
            priority, namespace, since = waiting[name]
            urgency = AGING.effective_priority(priority, since, now) if ages else priority
            return (-urgency, -town.boosts.get(namespace, 0), since, int(name[1:]))

        return min(waiting, key=key)

    def pop() -> None:
        expected = first(town.clock.now())
        assert town.fixture.place().job.key.partition("/")[2] == expected
        del waiting[expected]

    for number, (what, priority, namespace, boost, seconds) in enumerate(steps):
        if what == "add":
            now = town.clock.now()
            town.add(f"p{number}", namespace, priority=100 * priority, since=now, kind="xyz"[number % 3])
            waiting[f"p{number}"] = (100 * priority, namespace, now)
        elif what == "change":
            town.change(namespace, boost)
        elif what == "delete" and waiting:
            name = next(iter(waiting))
            assert town.queue.delete(f"{waiting.pop(name)[1]}/{name}")
        elif what == "pop" and waiting:
            pop()
        town.clock.advance(float(seconds))
    while waiting:
        pop()
