"""Questions are answered in copies of the process: each alone, users in turn, and no copy outlives its time."""

import asyncio
import os
import signal
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.app.http.api import copy_pacing, state_copies
from kubenexus.app.http.api.request_problem import RequestProblem, not_found
from kubenexus.app.http.api.state_copies import StateCopies
from kubenexus.app.http.api.waiting_questions import Question, WaitingQuestion, WaitingQuestions
from kubenexus.base.clock import VirtualClock, WallClock
from tests.async_helpers import HANGS


@pytest.fixture(autouse=True)
def _without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of a virtual clock does not pass while a test waits for the next copy. Real time does, and copies have
    the lowest priority: on a machine with much other work they would not be done in time."""
    monkeypatch.setattr(copy_pacing, "MAX_INTERVAL", 0.0)
    monkeypatch.setattr(state_copies, "MAX_SECONDS", round(HANGS))


def asked(*questions: Question) -> list[bytes | RequestProblem]:
    async def all_of_them() -> list[bytes | RequestProblem]:
        copies = StateCopies(VirtualClock(0.0))
        found = await asyncio.gather(*map(copies.answer, questions), return_exceptions=True)
        assert copies.copies <= 1 + len(questions) // state_copies.MAX_TOGETHER
        return [each for each in found if isinstance(each, bytes | RequestProblem)]

    return asyncio.run(all_of_them())


def a_problem() -> bytes:
    raise not_found("no such thing")


def a_bug() -> bytes:
    raise ZeroDivisionError


def an_end() -> bytes:
    os._exit(3)


def test_each_question_has_a_copy_of_its_own_and_a_bad_one_hurts_no_other() -> None:
    state: list[int] = []

    def change() -> bytes:
        state.append(1)
        return msgspec.json.encode(state)

    def forever() -> bytes:
        while signal.alarm(1):  # brings the alarm nearer, if one was set
            signal.pause()
        return b"no alarm"

    found = asked(change, a_problem, a_bug, an_end, forever, change)
    assert found[0] == found[5] == b"[1]"
    assert state == []
    assert [each.status for each in found[1:5] if isinstance(each, RequestProblem)] == [404, 500, 504, 504]


def test_equal_questions_that_wait_together_are_answered_once_and_reading_needs_no_further_copy() -> None:
    async def story() -> None:
        copies = StateCopies(WallClock())
        some = [copies.answer(lambda: b"%d" % os.getpid(), "key", changes=False) for _ in range(200)]
        other = copies.answer(lambda: b"%d" % os.getpid(), changes=False)
        *same, last = await asyncio.gather(*some, other)
        assert set(same) == {last}, "one copy"
        assert last != b"%d" % os.getpid()
        hung_up = asyncio.ensure_future(copies.answer(lambda: b"x", "other"))
        patient = asyncio.ensure_future(copies.answer(lambda: b"x", "other"))
        await asyncio.sleep(0)
        hung_up.cancel()
        assert await patient == b"x"

    asyncio.run(story())


def test_a_large_answer_comes_whole_and_one_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_copies, "MAX_ANSWER", 3 << 20)
    large, too_large = asked(lambda: b"x" * (3 << 20), lambda: b"x" * (4 << 20))
    assert large == b"x" * (3 << 20)
    assert isinstance(too_large, RequestProblem)
    assert too_large.status == 413


def test_more_questions_than_may_wait_are_refused_at_once() -> None:
    found = asked(*[lambda: b"x"] * (state_copies.MAX_WAITING + 5))
    refused = [each for each in found if isinstance(each, RequestProblem)]
    assert len(refused) == 5
    assert {each.status for each in refused} == {429}


# --- users ----------------------------------------------------------------------------------------------------------


def test_a_user_who_fills_the_line_is_refused_and_no_other() -> None:
    async def story() -> None:
        copies = StateCopies(WallClock())
        many = [copies.answer(lambda: b"x", user="many") for _ in range(state_copies.MAX_WAITING + 9)]
        few = [copies.answer(lambda: b"y", user=name) for name in ("few", "few", "other")]
        found = await asyncio.gather(*many, *few, return_exceptions=True)
        assert found[-3:] == [b"y"] * 3
        refused = [each for each in found if isinstance(each, RequestProblem)]
        assert [each.status for each in refused] == [429] * 12

    asyncio.run(story())


def line(questions: WaitingQuestions, user: str, count: int, **more: str) -> list[WaitingQuestion]:
    """Adds questions of a user that no other asks."""
    made = [WaitingQuestion(bytes, asyncio.Future(), user, changes=False, **more) for _ in range(count)]
    for each in made:
        questions.add(each)
    return made


def test_users_take_turns_however_much_one_asks() -> None:
    async def story() -> None:
        questions = WaitingQuestions(10)
        line(questions, "a", 6)
        line(questions, "b", 2)
        line(questions, "c", 1)
        assert [each.user for each in questions.take(4)] == [*"abca"]
        line(questions, "d", 1)
        assert [each.user for each in questions.take(9)] == [*"badaaa"]
        assert len(questions) == 0

    asyncio.run(story())


def test_a_question_of_two_users_leaves_only_if_both_ask_too_much() -> None:
    async def story() -> None:
        questions = WaitingQuestions(4)
        shared = WaitingQuestion(bytes, asyncio.Future(), "a", "key", changes=False)
        line(questions, "a", 3)
        questions.add(shared)
        assert questions.join("key", "b") is shared
        (first,) = [questions.add(each) for each in [WaitingQuestion(bytes, asyncio.Future(), "c", changes=False)]]
        assert first is not shared
        assert first is not None
        assert first.user == "a"
        assert shared.user == "b"
        assert questions.join("other", "c") is None

    asyncio.run(story())


@given(
    st.lists(
        st.tuples(st.sampled_from("abcde"), st.sampled_from([None, None, "k", "l"]), st.integers(0, 9)), max_size=60
    )
)
def test_the_share_of_a_user_is_never_refused(asked: "list[tuple[str, str | None, int]]") -> None:
    """With place for eight and five users, the first question of a user always waits until it is taken."""

    async def story() -> None:
        questions, waiting = WaitingQuestions(8), set[WaitingQuestion]()
        for user, key, taken in asked:
            if questions.join(key, user) is None:
                own = WaitingQuestion(bytes, asyncio.Future(), user, key, changes=False)
                waiting.add(own)
                lengths = Counter(each.user for each in waiting)
                left = questions.add(own)
                if left is not None:
                    waiting.remove(left)
                    assert lengths[user] > 1 or left is not own
                    assert all(lengths[each] >= max(lengths.values()) - 1 for each in left.users)
            if taken == 0:
                waiting.difference_update(questions.take(2))
            assert len(questions) == len(waiting) <= 8
        assert {*questions.take(8)} == waiting

    asyncio.run(story())


def test_a_copy_leaves_the_rest_to_the_next_one_after_its_turn() -> None:
    """Else a user whose questions take 15 seconds each would keep all others waiting for minutes."""
    clock = VirtualClock(0.0)

    def slow() -> bytes:
        clock.advance(state_copies.TURN_SECONDS + 1)  # the clock of the copy
        return b"%d" % os.getppid()

    async def story() -> None:
        copies = StateCopies(clock)
        some = [copies.answer(slow, changes=False) for _ in range(3)]
        assert len(set(await asyncio.gather(*some))) == 1  # all copies are children of this process
        assert copies.copies == 3

    asyncio.run(story())


# --- the end of copies ------------------------------------------------------------------------------------------------


def test_no_copy_outlives_the_end_of_the_process(tmp_path: Path) -> None:
    """A question has a copy of its own, made by a copy: both end when nothing waits for the answer any more."""
    pipe = tmp_path / "pids"  # by name, since a copy has no open files
    os.mkfifo(pipe)
    reads = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)

    def forever() -> bytes:
        pipe.write_text(f"{os.getpid()} {os.getppid()}", encoding="ascii")
        signal.pause()
        return b""

    async def story() -> None:
        copies = StateCopies(WallClock())
        asked = asyncio.ensure_future(copies.answer(forever))
        await readable(reads)
        pids = [int(pid) for pid in os.read(reads, 100).split()]
        handles = [os.pidfd_open(pid) for pid in pids]
        await copies.close()
        asked.cancel()
        for handle in handles:
            await readable(handle)
            os.close(handle)

    asyncio.run(story())
    os.close(reads)


async def readable(handle: int) -> None:
    """Waits until a pipe has something to read, or the process of a handle has ended."""
    loop, seen = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(handle, seen.set)
    try:
        async with asyncio.timeout(HANGS / 2):  # an alarm would end a copy after twice that time
            await seen.wait()
    finally:
        loop.remove_reader(handle)
