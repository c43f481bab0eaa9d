"""Jobs that are refused again and again do not take the turns of others: newcomers, those refused less often, and those
of other namespaces."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.api.core import PodAffinityTerm
from kubenexus.api.selectors import LabelSelector
from kubenexus.framework.aging import Aging
from kubenexus.queue.backoff_policy import BackoffPolicy
from kubenexus.queue.queued_job import SchedulingAttempt
from kubenexus.queue.retry_shares import MAX_CHARGE
from kubenexus.testing.builders import HOSTNAME
from tests.queue.queue_fixture import LEFT, NODE, QueueFixture

KINDS = 500
TURN = 0.04  # seconds of a decision, 25 a second: twenty times less than it takes to try all kinds once a second
DECISION = 0.01  # the same where there are few

AGING = pytest.mark.parametrize("aging", [None, Aging()], ids=["kube-scheduler's order", "waiting makes urgent"])


class Siege:
    """So many kinds that are always refused, woken once a second. `tried` is when each job had its turns."""

    def __init__(self, aging: Aging | None, kinds: int = KINDS) -> None:
        self.fixture = QueueFixture(BackoffPolicy())
        self.fixture.profile.aging = aging
        self.tried: dict[str, list[float]] = {}
        self.hopeless = [self.fixture.add(f"never-{i}") for i in range(kinds)]
        while self.fixture.queue.has_ready:
            self.decide(self.fixture.pop())

    def decide(self, attempt: SchedulingAttempt) -> None:
        self.fixture.clock.advance(TURN)
        self.tried.setdefault(attempt.job.key, []).append(self.fixture.clock.now())
        if attempt.job.key.startswith("default/fits"):
            self.fixture.place(attempt)
        else:
            self.fixture.refuse("Ports", attempt=attempt)

    def last(self, seconds: int) -> None:
        for _ in range(seconds):
            self.fixture.queue.on_event(LEFT)
            end = self.fixture.clock.now() + 1.0
            while self.fixture.clock.now() < end:
                self.fixture.queue.tick()
                attempt = self.fixture.queue.pop()
                if attempt is None:
                    self.fixture.clock.advance(TURN)
                else:
                    self.decide(attempt)


@AGING
def test_newcomers_have_their_turn_within_a_second_whatever_was_refused_before(aging: Aging | None) -> None:
    siege = Siege(aging)
    siege.last(100)
    for i in range(10):
        made = siege.fixture.clock.now()
        key = siege.fixture.add(f"fits-{i}")
        siege.last(5)
        assert key in siege.tried
        assert siege.tried[key][0] - made <= 4 * TURN


@AGING
def test_one_that_was_refused_once_is_tried_again_among_thousands_that_are_older(aging: Aging | None) -> None:
    siege = Siege(aging)
    siege.last(30)
    key = siege.fixture.add("once")
    siege.last(100)
    times = siege.tried[key]
    assert len(times) > 1
    assert times[1] - times[0] <= 3 * KINDS * TURN


@AGING
def test_each_of_those_that_are_refused_is_tried_in_bounded_time(aging: Aging | None) -> None:
    siege = Siege(aging)
    siege.last(130)
    for key in siege.hopeless:
        times = [*siege.tried[key], siege.fixture.clock.now()]
        assert max(b - a for a, b in itertools.pairwise(times)) <= 3 * KINDS * TURN


def test_old_ones_are_tried_although_newcomers_never_end() -> None:
    siege = Siege(None, kinds=20)
    siege.fixture.clock.advance(60.0)
    siege.fixture.queue.on_event(LEFT)
    before = {key: len(times) for key, times in siege.tried.items()}
    for i in range(3 * 20):
        siege.fixture.add(f"fits-{i}")
        siege.decide(siege.fixture.pop())
    assert all(len(siege.tried[key]) > before[key] for key in siege.hopeless)


def test_a_newcomer_with_less_priority_does_not_take_a_turn_of_one_that_was_refused() -> None:
    fixture = QueueFixture()
    for name in ("a", "b", "c"):
        fixture.add(name, priority=5)
        fixture.refuse("Room")
    fixture.add("low", priority=4)
    fixture.clock.advance(60.0)
    fixture.queue.on_event(NODE)
    assert [fixture.refuse("Room").job.key for _ in range(4)] == [f"default/{name}" for name in ("a", "b", "c", "low")]


def test_a_newcomer_goes_after_one_retry_in_vain_and_before_the_next() -> None:
    fixture = QueueFixture()
    for name in ("a", "b", "c"):
        fixture.add(name)
        fixture.refuse("Room")
    for name in ("new", "newer"):
        fixture.add(name)
    fixture.clock.advance(60.0)
    fixture.queue.on_event(NODE)
    tried = [fixture.refuse("Room").job.key.partition("/")[2] for _ in range(5)]
    assert tried == ["a", "new", "b", "newer", "c"]


def test_while_retries_succeed_the_order_is_the_only_rule() -> None:
    fixture = QueueFixture()
    for name in ("a", "b", "c"):
        fixture.add(name)
        fixture.refuse("Room")
    fixture.add("new")
    fixture.clock.advance(60.0)
    fixture.queue.on_event(NODE)
    assert fixture.popped() == ["a", "b", "c", "new"]


# --- namespaces take turns ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("namespaces", "classes", "terms"),
    [
        pytest.param(1, 40, 0, id="a namespace with many classes"),
        pytest.param(20, 2, 0, id="many namespaces with two classes each"),
        pytest.param(40, 1, 200, id="many namespaces with a single class that costs much to try"),
    ],
)
def test_a_refused_job_is_the_second_that_is_tried_again_if_its_namespace_cost_less(
    namespaces: int, classes: int, terms: int
) -> None:
    """The crowd is older, and was refused before."""
    fixture = QueueFixture()
    for number in range(namespaces * classes):
        fixture.add(f"p{number}", namespace=f"crowd-{number % namespaces}", near=_near(terms))
        fixture.refuse("Room")
        fixture.clock.advance(DECISION)
    key = fixture.add("waits", namespace="victim")
    fixture.refuse("Room")
    fixture.clock.advance(10.0)
    fixture.happens(NODE)
    assert [fixture.refuse("Room").job.key for _ in range(2)] == ["crowd-0/p0", key]


def test_a_namespace_that_costs_much_lets_others_go_first_for_a_bounded_time() -> None:
    """Thirty others are older, and some of them are always ready: a decision takes a second, a backoff at most ten."""
    fixture, others = QueueFixture(BackoffPolicy()), 30
    keys = [fixture.add(f"p{number}", namespace=f"cheap-{number}") for number in range(others)]
    costly = fixture.add("large", namespace="costly", near=_near(2_000))
    tried: dict[str, list[float]] = {}
    for _ in range(1_000):
        fixture.happens(NODE)
        tried.setdefault(fixture.refuse("Room").job.key, []).append(fixture.clock.now())
        fixture.clock.advance(1.0)
    gaps = {key: max(b - a for a, b in itertools.pairwise(tried[key])) for key in (costly, *keys)}
    assert MAX_CHARGE <= gaps[costly] <= MAX_CHARGE + 2 * others + 1
    assert max(gaps[key] for key in keys) <= 2 * others + 2


@given(
    crowd=st.dictionaries(
        st.tuples(st.integers(0, 2), st.sampled_from("abcdef")), st.integers(1, 6), min_size=1, max_size=10
    ),
    rounds=st.integers(1, 3),
)
def test_each_namespace_is_tried_within_two_retries_in_vain_for_each_and_the_highest_priority_first(
    crowd: dict[tuple[int, str], int], rounds: int
) -> None:
    """`crowd` is how many classes there are of each priority and namespace."""
    fixture = QueueFixture()
    for (priority, namespace), classes in crowd.items():
        for number in range(classes):
            fixture.add(
                f"p{priority}-{number}", f"{namespace}{priority}{number}", None, namespace=namespace, priority=priority
            )
    for done in range(rounds + 1):
        shares = []
        for _ in range(sum(crowd.values())):
            job = fixture.refuse("Room").job
            shares.append((job.pods[0].spec.priority, job.namespace))
            fixture.clock.advance(DECISION)
        assert [priority for priority, _ in shares] == sorted((priority for priority, _ in shares), reverse=True)
        for priority in {priority for priority, _ in crowd} if done else ():
            there = {share for share in crowd if share[0] == priority}
            assert set([share for share in shares if share[0] == priority][: 2 * len(there)]) == there
        fixture.clock.advance(100.0)
        fixture.happens(NODE)


def _near(terms: int) -> list[PodAffinityTerm]:
    return [
        PodAffinityTerm(topology_key=HOSTNAME, label_selector=LabelSelector(match_labels={"app": str(number)}))
        for number in range(terms)
    ]
