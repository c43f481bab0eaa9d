"""Namespaces take turns, each in its own order; one whose calls hang leaves slots to the others."""

import asyncio
import heapq
import math
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.client.calls import Call
from kubenexus.client.fair_queue import (
    FAILING_CALLS,
    FIRST_CALLS,
    LATE_SECONDS,
    SLOW_AVERAGE,
    SLOW_SECONDS,
    STALLED_SECONDS,
    TRIAL_TIMEOUT,
    CallInFlight,
    FairQueue,
)
from kubenexus.client.fair_slots import FairSlots
from kubenexus.client.namespace_calls import LARGE, Speed
from kubenexus.sim.virtual.loop import run
from tests.async_helpers import yield_to_loop
from tests.sim.virtual.virtual_time import elapse

Queue = FairQueue[int]


def filled(limit: int, first: int = FIRST_CALLS, **waiting: int) -> Queue:
    queue = Queue(limit, first=first, trials=first == FIRST_CALLS)
    for namespace, count in waiting.items():
        for i in range(count):
            queue.put(namespace, i, i)
    return queue


def begun(queue: Queue) -> list[CallInFlight[int]]:
    """All that may be sent now."""
    return list(iter(queue.next, None))


def answer(queue: Queue, rounds: int) -> None:
    """All that may be sent is answered at once, so many times."""
    for _ in range(rounds):
        for call in begun(queue):
            queue.done(call)


def names(calls: list[CallInFlight[int]]) -> list[str]:
    return [f"{call.namespace}{call.item}" for call in calls]


def test_namespaces_take_turns_and_each_is_first_in_first_out() -> None:
    async def life() -> None:
        queue = filled(7, 7, a=5, b=2, c=1)
        assert names(begun(queue)) == ["a0", "b0", "c0", "a1", "b1", "a2", "a3"]
        assert (len(queue), queue.in_flight) == (1, 7)

    run(life())


def test_one_namespace_that_is_answered_has_all_slots_after_five_rounds() -> None:
    async def life() -> None:
        queue, sent, window = filled(64, a=1000), 0, 1
        while calls := begun(queue):
            assert queue.in_flight == min(window, 64, 1000 - sent)
            sent, window = sent + len(calls), max(FIRST_CALLS, 2 * window)
            await elapse(SLOW_AVERAGE / 2)
            for call in calls:
                queue.done(call)
        assert (sent, len(queue), queue._lines) == (1000, 0, {})

    run(life())


def test_what_is_replaced_keeps_its_place_and_what_is_removed_is_gone() -> None:
    async def life() -> None:
        queue = filled(8, 8, a=3, b=1)
        queue.put("a", 0, 100)
        assert (queue.remove("b", 0), queue.remove("b", 0), queue.remove("c", 0)) == (0, None, None)
        assert names(begun(queue)) == ["a100", "a1", "a2"]

    run(life())


def test_what_rests_comes_back_after_the_others() -> None:
    async def life() -> None:
        queue = filled(1, a=2)
        (first,) = begun(queue)
        queue.postpone(first, 3.0)
        assert len(queue) == 2
        (second,) = begun(queue)
        queue.done(second)
        assert begun(queue) == []
        await elapse(3.1)
        (again,) = begun(queue)
        assert again.item == first.item
        queue.postpone(again, math.inf)
        queue.put("a", 0, 7)
        assert (names(begun(queue)), len(queue)) == (["a7"], 0), "what is newer does not rest"

    run(life())


def test_when_something_has_to_go_it_is_the_oldest_of_the_namespace_with_the_most() -> None:
    queue = filled(1, a=2, b=3)
    assert [queue.drop() for _ in range(6)] == [0, 0, 1, 1, 2, None]
    assert len(queue) == 0


# --- namespaces whose calls hang ----------------------------------------------------------------------------------


def test_a_namespace_whose_calls_hang_leaves_half_of_the_slots() -> None:
    async def life() -> None:
        woken = list[float]()
        queue = filled(8, evil=100)
        answer(queue, 4)
        hung = begun(queue)
        queue._averages["good"] = 0.0  # it was answered before
        queue.put("good", 0, 0)
        queue._changed = lambda: woken.append(asyncio.get_running_loop().time())
        assert (len(hung), queue.next()) == (8, None), "until it is known that they hang"
        await elapse(LATE_SECONDS)
        assert (woken[-1], queue.late, queue.held, queue.slow("evil")) == (LATE_SECONDS, 8, 71, True)
        assert names(begun(queue)) == ["good0"]
        for call in hung:
            queue.done(call)
        assert len(begun(queue)) == queue.share("evil") == 4

    run(life())


def test_all_that_hang_share_one_half() -> None:
    async def life() -> None:
        queue = filled(8, a=50, b=50, c=50)
        for call in begun(queue):
            await elapse(0.0)
            assert not call.late
        await elapse(LATE_SECONDS)
        for call in list(queue._calls):
            queue.done(call)
        assert (queue.share("a"), Counter(call.namespace for call in begun(queue))) == (1, dict.fromkeys("abc", 1))
        queue.put("good", 0, 0)
        assert names(begun(queue)) == ["good0"]

    run(life())


def test_a_namespace_holds_one_slot_until_it_was_answered_and_what_concerns_none_holds_all() -> None:
    async def life() -> None:
        queue = filled(16, a=100, b=100)
        assert Counter(each.namespace for each in begun(queue)) == {"a": 1, "b": 1}
        for i in range(16):
            queue.put("", i, i)
        assert names(begun(queue)) == [f"{i}" for i in range(16)], "trials take none of them"

    run(life())


@pytest.mark.parametrize(
    ("answers", "slow"),
    [
        pytest.param(0, True, id="not asked yet"),
        pytest.param(3, True, id="one answer too few"),
        pytest.param(4, False, id="as many answers in time as there are slots"),
    ],
)
def test_when_a_namespace_is_trusted_again(answers: int, slow: bool) -> None:
    async def life() -> None:
        queue = filled(4, evil=100)
        hung = begun(queue)
        await elapse(LATE_SECONDS + 1.0)
        for call in hung:
            queue.done(call)
        for _ in range(answers):
            call = queue.next() or hung[0]
            queue.done(call)
        assert queue.slow("evil") is slow
        await elapse(SLOW_SECONDS - 1.0)
        assert queue.slow("evil") is slow
        await elapse(2.0 + LATE_SECONDS)
        assert not queue.slow("evil"), "it was not asked for a minute"

    run(life())


@pytest.mark.parametrize(
    ("seconds", "slow"),
    [
        pytest.param(0.9 * SLOW_AVERAGE, False, id="a bit less than they may"),
        pytest.param(1.1 * SLOW_AVERAGE, True, id="a bit more than they may"),
        pytest.param(0.95 * LATE_SECONDS, True, id="each answered just in time"),
    ],
)
def test_a_namespace_whose_calls_take_long_on_average_is_slow_until_they_do_not(seconds: float, slow: bool) -> None:
    async def life() -> None:
        queue = filled(8, evil=1000)
        for _ in range(8):
            calls = begun(queue)
            await elapse(seconds)
            for call in calls:
                queue.done(call)
        assert (queue.slow("evil"), queue.failing("evil"), queue.late) == (slow, "", 0)
        for _ in range(40):
            for call in begun(queue):
                queue.done(call)
        assert not queue.slow("evil")

    run(life())


@pytest.mark.parametrize(
    ("answers", "failing"),
    [
        pytest.param("-" * (FAILING_CALLS // 2 - 1), False, id="a few failures"),
        pytest.param("-" * (FAILING_CALLS // 2), True, id="failures in a row"),
        pytest.param("-+" * FAILING_CALLS, True, id="every second one fails"),
        pytest.param("-+++" * FAILING_CALLS, False, id="every fourth one fails"),
        pytest.param("-" * FAILING_CALLS + "+" * 5, False, id="each success halves what was in vain"),
        pytest.param("-" * FAILING_CALLS + "+" * 4, True, id="one success too few"),
    ],
)
def test_a_namespace_of_which_many_calls_fail_has_one_slot(answers: str, failing: bool) -> None:
    async def life() -> None:
        queue = filled(8, evil=1000)
        answer(queue, 4)
        for said in answers:
            calls = begun(queue)
            if said == "+":
                queue.passed("evil")
            else:
                queue.failed("evil", "denied")
            for each in calls:
                queue.done(each)
        assert (queue.slow("evil"), queue.failing("evil")) == (failing, "denied" if failing else "")
        assert len(begun(queue)) == (1 if failing else 8)
        assert queue.share("evil") == (1 if failing else 4)

    run(life())


def test_those_that_answer_slowly_do_not_share_the_slots_of_those_that_may_never_answer() -> None:
    async def life() -> None:
        queue = Queue(16)
        for i in range(20):
            for j in range(4):
                queue.put(f"evil-{i}", j, j)
        for _ in range(10):  # each is found out to hang, four at a time
            begun(queue)
            await elapse(LATE_SECONDS)
        for i in range(1000):
            queue.put("slow", i, i)
        for _ in range(8):
            calls = [each for each in begun(queue) if each.namespace == "slow"]
            await elapse(2 * SLOW_AVERAGE)
            for call in calls:
                queue.done(call)
        assert (queue.slow("slow"), queue.stuck("slow"), queue.stuck("evil-0")) == (True, False, True)
        assert queue.share("evil-0") == 1
        assert len([each for each in begun(queue) if each.namespace == "slow"]) == 16 - 8 - 2, "all but two are used"

    run(life())


async def in_the_last_second(queue: Queue, namespaces: dict[str, float], seconds: float = 3.0) -> Counter[str]:
    """Each namespace always has calls waiting, and each call takes the seconds of its namespace. Returns how many were
    answered in the last second."""
    loop, ends, number = asyncio.get_running_loop(), list[tuple[float, int, CallInFlight[int]]](), 0
    counts = Counter[str]()
    for namespace in namespaces:
        for i in range(200):
            queue.put(namespace, i, i)
    until = loop.time() + seconds
    while loop.time() < until:
        while (call := queue.next()) is not None:
            number += 1
            heapq.heappush(ends, (loop.time() + namespaces[call.namespace], number, call))
        at, _, call = heapq.heappop(ends)
        await elapse(max(0.0, at - loop.time()))
        queue.done(call)
        counts[call.namespace] += loop.time() > until - 1.0
        queue.put(call.namespace, (number, "again"), 0)
    return counts


@pytest.mark.parametrize(
    ("others", "least"),
    [
        pytest.param(0.24, 500, id="the others are slow"),
        pytest.param(0.9 * SLOW_AVERAGE, 80, id="the others are just not slow: as many slot-seconds as each of them"),
    ],
)
def test_namespaces_share_seconds_and_not_calls(others: float, least: int) -> None:
    """One of 64 that took turns would have 64 slots x 1 s / 64 / 0.24 s: four calls a second."""

    async def life() -> None:
        queue, evil = Queue(64), {f"evil-{i}": others for i in range(63)}
        counts = await in_the_last_second(queue, {"good": 0.01, **evil})
        assert counts["good"] >= least
        assert min(counts[each] for each in evil) >= 1 if others < 0.1 else sum(counts.values()) > least + 60
        assert queue.in_flight >= 60, "no slot that is wanted stays empty"

    run(life())


@pytest.mark.parametrize(("seconds", "held"), [(0.1, False), (0.4, True)], ids=["a busy server", "a slow webhook"])
def test_slow_namespaces_have_nearly_all_slots_while_no_others_want_them(seconds: float, held: bool) -> None:
    """A server that takes 64 calls at once may take more than 50 ms for each: events are not to add to that."""

    async def life() -> None:
        queue = Queue(64)
        counts = await in_the_last_second(queue, {"slow": seconds}, 5.0)
        assert queue.slow("slow")
        assert queue.held == (queue.waits("slow") if held else 0)
        assert queue.in_flight >= 64 - 64 // 8 - 1
        assert counts["slow"] > 40 / seconds

    run(life())


@pytest.mark.parametrize("namespaces", [100, 1000])
def test_namespaces_that_were_never_answered_leave_all_slots_to_others(namespaces: int) -> None:
    async def life() -> None:
        queue = filled(64, good=100)
        answer(queue, 20)
        assert len(queue) == 0
        for i in range(namespaces):
            for j in range(4):
                queue.put(f"evil-{i}", j, j)
        assert [*Counter(each.namespace for each in begun(queue)).values()] == [1] * 64
        for _ in range(5):
            for i in range(FIRST_CALLS):
                queue.put("good", i, i)
            for call in begun(queue):
                if call.namespace == "good":
                    queue.done(call)
            assert queue.waits("good") == 0, "it is known from before"
            await elapse(LATE_SECONDS)
            begun(queue)

    run(life())


@pytest.mark.parametrize(
    ("limit", "hanging", "newer", "seconds"),
    [
        pytest.param(64, 500, 30, 3.0, id="binds"),
        pytest.param(8, 400, 2, 15.0, id="status patches"),
    ],
)
def test_a_namespace_that_was_never_answered_does_not_wait_for_all_others_that_hang(
    limit: int, hanging: int, newer: int, seconds: float
) -> None:
    """Others come before it and, so many in each second, after it. Their callers end calls as early as they may."""

    async def life() -> None:
        queue, loop, number = Queue(limit), asyncio.get_running_loop(), 0
        ends = list[tuple[float, int, CallInFlight[int]]]()
        for i in range(hanging):
            queue.put(f"evil-{i}", 0, 0)
        queue.put("good", 0, 0)
        while queue.waits("good"):
            for call in begun(queue):
                number += 1
                heapq.heappush(ends, (loop.time() + call.timeout(5.0), number, call))
            assert queue.in_flight <= 2 * limit
            await elapse(0.05)
            while ends and ends[0][0] <= loop.time():
                queue.done(heapq.heappop(ends)[2], sent=False)
            for i in range(int(loop.time() * newer) - int((loop.time() - 0.05) * newer)):
                queue.put(f"newer-{loop.time()}-{i}", 0, 0)
        assert loop.time() <= seconds

    run(life())


@pytest.mark.parametrize(
    ("seconds", "speed"),
    [
        pytest.param(0.01, Speed.QUICK, id="quickly"),
        pytest.param(0.2, Speed.SLOW, id="slowly"),
        pytest.param(0.6, Speed.SLOW, id="after its trial, but in time"),
        pytest.param(2.0, Speed.STUCK, id="late"),
    ],
)
def test_what_a_namespace_is_after_its_trial_and_some_answers(seconds: float, speed: Speed) -> None:
    async def life() -> None:
        queue = filled(8, new=100)
        (trial,) = begun(queue)
        assert (trial.trial, trial.timeout(5.0)) == (True, TRIAL_TIMEOUT)
        await elapse(min(seconds, TRIAL_TIMEOUT))
        queue.done(trial, sent=seconds < TRIAL_TIMEOUT)
        for _ in range(4):
            calls = begun(queue)
            assert not any(call.trial for call in calls)
            await elapse(seconds)
            for call in calls:
                queue.done(call)
        assert queue.speed("new") is speed

    run(life())


def test_a_namespace_that_comes_and_goes_leaves_nothing_behind() -> None:
    async def life() -> None:
        queue = filled(4, evil=4)
        begun(queue)
        await elapse(LATE_SECONDS)
        for i in range(10_000):
            queue.put("evil", i, i)
            queue.remove("evil", i)
        for i in range(10_000):
            queue.put(f"other-{i}", i, i)
            queue.remove(f"other-{i}", i)
        assert sum(len(group.turns) for group in queue._groups.values()) < 400
        assert len(queue._averages) == 0

    run(life())


def test_failures_are_forgiven_after_a_minute() -> None:
    async def life() -> None:
        queue = Queue(4)
        for _ in range(FAILING_CALLS):
            queue.failed("evil", "denied")
        queue.failed("once", "denied")
        assert [queue.failing(namespace) for namespace in ("evil", "once", "other")] == ["denied", "", ""]
        await elapse(SLOW_SECONDS - 1.0)
        assert queue.failing("evil")
        await elapse(1.0 + LATE_SECONDS)
        assert (queue.slow("evil"), queue._lines, queue._timer) == (False, {}, None)

    run(life())


def test_a_quick_namespace_of_which_one_call_failed_stays_quick() -> None:
    async def life() -> None:
        queue = filled(4, good=20)
        answer(queue, 10)
        queue.failed("good", "conflict")
        await elapse(SLOW_SECONDS + 2 * LATE_SECONDS)
        assert (queue.speed("good"), queue._lines) == (Speed.QUICK, {})

    run(life())


@pytest.mark.parametrize("turns", [1, 5], ids=["one turn of the loop", "turn after turn of the loop"])
def test_an_answer_that_lies_unread_while_the_loop_is_blocked_is_not_late(turns: int) -> None:
    """A decision may take seconds, in which nothing that was received is looked at."""

    async def life() -> None:
        queue = filled(4, a=1)
        (call,) = begun(queue)
        loop = asyncio.get_running_loop()
        for _ in range(turns):
            await elapse(0.1)
            loop._selector.now = loop.time() + 3.0  # type: ignore[attr-defined]
        loop.call_soon(lambda: loop.call_soon(queue.done, call))  # the answer is read, and then its task goes on
        await elapse(0.1)
        assert (queue.in_flight, queue.slow("a")) == (0, False)

    run(life())


def test_a_namespace_of_which_nothing_goes_through_is_reported() -> None:
    async def life() -> None:
        said = dict[str, int]()
        queue = Queue(4, stalled=said.__setitem__)
        for namespace in ("evil", "good"):
            for i in range(10):
                queue.put(namespace, i, i)
        for _ in range(int(STALLED_SECONDS) + 5):
            for call in begun(queue):
                if call.namespace == "evil":
                    queue.postpone(call, 0.5)
                else:
                    queue.done(call)
                    queue.put("good", call.key, call.item)
            await elapse(1.0)
        assert said == {"evil": 10}

    run(life())


# --- whatever happens ---------------------------------------------------------------------------------------------


@given(st.integers(1, 6), st.integers(0, 2**32))
def test_whatever_happens_bounds_hold_and_all_are_sent_in_order(limit: int, seed: int) -> None:
    dice = random.Random(seed)

    async def life() -> None:
        queue, put, sent = Queue(limit), Counter[str](), Counter[str]()
        hanging = set(dice.sample("abcd", dice.randint(0, 4)))
        calls = list[CallInFlight[int]]()
        for _ in range(60):
            for namespace in dice.choices("abcd", k=dice.randint(0, 6)):
                queue.put(namespace, put[namespace], put[namespace])
                put[namespace] += 1
            while (call := queue.next()) is not None:
                calls.append(call)
                assert call.item == sent[call.namespace], "first in, first out"
                sent[call.namespace] += 1
            trials = sum(call.trial for call in calls)
            assert queue.in_flight - trials - max(0, queue.late - max(1, limit // 2)) <= limit
            assert sum(call.trial and not call.late for call in calls) <= limit
            assert queue.in_flight <= 2 * limit
            assert len(queue) == sum((put - sent).values())
            await elapse(dice.choice([0.0, 0.3, 1.5]))
            for call in [each for each in calls if each.namespace not in hanging or dice.random() < 0.1]:
                calls.remove(call)
                queue.done(call)
        while calls or len(queue):  # all answer in the end
            for call in calls:
                queue.done(call)
            calls = begun(queue)
        await elapse(SLOW_SECONDS + 3.0)
        assert (queue._lines, queue.late, queue.in_flight, queue.waiting, queue.held) == ({}, 0, 0, False, 0)
        assert all((group.active, group.flights, group.waiting) == (0, 0, 0) for group in queue._groups.values())

    run(life())


# --- slots --------------------------------------------------------------------------------------------------------


def test_a_slot_is_waited_for_and_passed_on_by_those_who_are_cancelled() -> None:
    async def life() -> None:
        slots, got = FairSlots(1), list[str]()

        async def work(name: str) -> None:
            slot = await slots.acquire(name)
            got.append(name)
            try:
                await yield_to_loop()
            finally:
                slots.release(slot)

        first = asyncio.ensure_future(work("a"))
        await asyncio.sleep(0)
        others = [asyncio.ensure_future(work(name)) for name in "bcd"]
        await asyncio.sleep(0)
        others[0].cancel()  # in the line
        await first
        others[1].cancel()  # the slot may have been handed to it
        await asyncio.gather(*others, return_exceptions=True)
        assert got[0] == "a"
        assert got[-1] == "d"
        assert (slots.queue.in_flight, len(slots.queue)) == (0, 0)

    run(life())


def test_thousands_that_are_cancelled_at_once_take_no_slot_and_no_stack() -> None:
    async def life() -> None:
        slots = FairSlots(1)
        held = await slots.acquire("a")
        waiting = [asyncio.ensure_future(slots.acquire("a")) for _ in range(5000)]
        await asyncio.sleep(0)
        for each in waiting[:-1]:
            each.cancel()
        slots.release(held)
        slot = await waiting[-1]
        assert (slots.queue.in_flight, len(slots.queue)) == (1, 0)
        slots.release(slot)
        assert (slots.queue.in_flight, slots.queue._lines) == (0, {})

    run(life())


@pytest.mark.parametrize(
    ("path", "namespace"),
    [
        ("/api/v1/namespaces/shop/pods/web/binding", "shop"),
        ("/apis/events.k8s.io/v1/namespaces/shop/events", "shop"),
        ("/api/v1/pods?limit=500", ""),
        ("/version", ""),
    ],
)
def test_the_namespace_of_a_call(path: str, namespace: str) -> None:
    assert Call("GET", path).namespace == namespace


def test_a_timer_that_is_due_at_once_has_no_time_of_its_own_and_calls_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """uvloop returns a plain Handle, which has no `when()`, for a time less than a millisecond away."""

    async def story() -> None:
        loop = asyncio.get_running_loop()
        plain = type("Plain", (), {"cancel": lambda self: None})
        monkeypatch.setattr(loop, "call_at", lambda when, callback, *args: plain())
        queue = Queue(8)
        queue.put("a", "1", 1)
        queue.put("a", "2", 2)
        first = queue.next()
        assert first is not None
        queue._look()
        queue.done(first)
        assert queue.next() is not None

    run(story())


@pytest.mark.parametrize("others", [100, 4_000])
@pytest.mark.parametrize("at", [0.0, 0.5, 1.0], ids=["first", "in the middle", "last"])
def test_a_namespace_that_was_never_answered_is_tried_soon_if_it_has_many_calls(others: int, at: float) -> None:
    """Else nearly all binds that stop decisions may be those of a namespace which is tried last."""

    async def life() -> None:
        queue = Queue(64)
        for i in range(others + 1):
            if i == int(at * others):
                for number in range(LARGE):
                    queue.put("large", number, number)
            queue.put(f"hangs-{i}", 0, 0)
        assert "large" in {call.namespace for call in begun(queue)}, "among the first 64"

    run(life())


def test_every_second_trial_goes_to_any_namespace_however_many_have_many_calls() -> None:
    async def life() -> None:
        queue = Queue(64)
        for i in range(1, 101):
            for number in range(LARGE if i % 2 else 1):
                queue.put(f"n{i}", number, number)
        small = [call for call in begun(queue) if int(call.namespace[1:]) % 2 == 0]
        assert len(small) > 8, "about half of the second half"

    run(life())


def _ask(queue: Queue, namespace: str, number: int, *, at_once: bool) -> list[CallInFlight[int]]:
    """Asks for a slot. Returns the calls that begin now."""
    if at_once and (call := queue.begin(namespace, number)) is not None:
        return [call]
    queue.put(namespace, number, number)
    return begun(queue)


def _counts(queue: Queue) -> object:
    groups = {group.speed: (group.flights, group.waiting, group.active) for group in queue._groups.values()}
    return len(queue), queue.in_flight, queue.held, queue.late, sorted(queue._lines), groups


@given(
    st.integers(1, 12), st.booleans(), st.lists(st.tuples(st.sampled_from(["", "a", "b"]), st.booleans()), max_size=60)
)
def test_a_call_begins_at_once_where_it_would_be_the_next_and_else_waits(
    limit: int, trials: bool, steps: list[tuple[str, bool]]
) -> None:
    """The same calls on two queues, of which one never lets a call begin at once."""

    async def life() -> None:
        queues = [Queue(limit, first=limit, trials=trials) for _ in range(2)]
        flying: list[list[CallInFlight[int]]] = [[], []]
        for number, (namespace, answers) in enumerate(steps):
            for at_once, queue in enumerate(queues):
                calls = flying[at_once]
                if answers and calls:
                    queue.done(calls.pop(0))
                    calls += begun(queue)
                calls += _ask(queue, namespace, number, at_once=bool(at_once))
            assert sorted(names(flying[0])) == sorted(names(flying[1]))
            assert _counts(queues[0]) == _counts(queues[1])
            await elapse(0.01)

    run(life())
