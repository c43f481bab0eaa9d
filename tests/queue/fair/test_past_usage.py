"""What queues used in the past counts in their order, and half of it is forgotten in each half-life."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubenexus.queue.fair.past_usage import PastUsage
from kubenexus.state.ledger import Ledger
from kubenexus.testing.builders import a_node, a_pod
from tests.queue.fair.fair_fixture import FairFixture, names
from tests.state.queues.queue_objects import a_queue

HOUR = 3600.0


def two_queues(half_life: float = HOUR, **more: Any) -> FairFixture:
    return FairFixture(
        a_queue("a", namespaces=["a"], **more), a_queue("b", namespaces=["b"]), cpu=10, half_life=half_life
    )


def after_a_day_of(fixture: FairFixture, namespace: str) -> None:
    """One namespace has had all CPUs for a day, and gives them back."""
    fixture.add("long", namespace, cpu=10)
    fixture.run()
    fixture.clock.advance(24 * HOUR - 60.0)
    fixture.end(f"{namespace}/long")
    fixture.queue.tick()


def wanted(fixture: FairFixture, jobs: int = 6) -> list[str]:
    for i in range(jobs):
        fixture.add(f"a-{i}", "a", since=float(i))
        fixture.add(f"b-{i}", "b", since=100.0 + i)
    return names(fixture.run())


def test_a_queue_that_had_everything_for_a_day_waits_for_the_other() -> None:
    fixture = two_queues()
    after_a_day_of(fixture, "a")
    assert wanted(fixture)[:6] == [f"b-{i}" for i in range(6)]


def test_without_a_half_life_the_past_does_not_count() -> None:
    fixture = two_queues(half_life=0.0)
    after_a_day_of(fixture, "a")
    assert wanted(fixture)[:4] == ["a-0", "b-0", "a-1", "b-1"]


def test_the_past_is_forgotten() -> None:
    fixture = two_queues()
    after_a_day_of(fixture, "a")
    fixture.clock.advance(24 * HOUR)
    assert wanted(fixture)[:4] == ["a-0", "b-0", "a-1", "b-1"], "nothing is left"


def test_half_of_it_is_left_after_a_half_life() -> None:
    fixture = two_queues()
    after_a_day_of(fixture, "a")
    fixture.clock.advance(HOUR)
    found = wanted(fixture, jobs=10)
    assert found.index("a-0") == 5, "5 of 10 CPUs count as used still"


def test_what_was_used_within_the_guarantee_is_not_held_against_a_queue() -> None:
    fixture = two_queues(guaranteed={"cpu": 10})
    after_a_day_of(fixture, "a")
    assert wanted(fixture)[0] == "a-0"
    assert "cpu" not in fixture.tree.queue_of("a").past


def test_a_queue_below_its_guarantee_goes_first_whatever_its_past() -> None:
    fixture = two_queues(guaranteed={"cpu": 2})
    after_a_day_of(fixture, "a")
    assert wanted(fixture)[:3] == ["a-0", "a-1", "b-0"]


def test_the_same_times_give_the_same_order() -> None:
    def story() -> list[str]:
        fixture = two_queues(half_life=600.0)
        found: list[str] = []
        for turn in range(12):
            for namespace in ("a", "b") if turn % 3 else ("a",):
                fixture.add(f"{namespace}{turn}", namespace, cpu=1 + turn % 4)
            found += fixture.run()
            fixture.clock.advance(37.0 + turn)
            for key in sorted(fixture.running)[::2]:
                fixture.end(key)
        return found

    first = story()
    assert len(first) > 10
    assert first == story()


uses = st.lists(st.tuples(st.integers(0, 6), st.floats(0.1, 5000.0)), min_size=1, max_size=8)


@settings(max_examples=60)
@given(uses, st.integers(0, 3), st.floats(60.0, 50_000.0))
def test_the_average_is_the_integral_of_what_was_borrowed(
    changes: list[tuple[int, float]], guaranteed: int, half_life: float
) -> None:
    """Beside a sum over all intervals, each with what is left of it at the end."""
    ledger = Ledger()
    ledger.upsert_node(a_node("n", cpu="100"))
    ledger.queues.set_queue(a_queue("q", namespaces=["a"], guaranteed={"cpu": guaranteed}))
    past, now, spans = PastUsage(ledger.queues, half_life), 0.0, list[tuple[float, float, int]]()
    past.rebuilt(now)
    for pods, seconds in changes:
        for i in range(6):
            ledger.remove_pod(f"a/p{i}")
        for i in range(pods):
            ledger.upsert_pod(a_pod(f"p{i}", namespace="a", node="n", cpu="1"))
        past.changed([ledger.queues.queue_of("a")], now)
        spans.append((now, now + seconds, max(pods - guaranteed, 0) * 1000))
        now += seconds
    past.rebuilt(now)
    expected = sum(
        used * (2 ** (-(now - end) / half_life) - 2 ** (-(now - start) / half_life)) for start, end, used in spans
    )
    found = ledger.queues.queue_of("a").past.get("cpu", 0.0)
    assert found == pytest.approx(expected, abs=1e-2)
