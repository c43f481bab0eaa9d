"""Jobs of a namespace that is not admitted for a while are set aside, and others pass them."""

from collections.abc import Callable

import pytest

from kubenexus.framework.job import Job
from kubenexus.queue.entry import Place
from tests.queue.easy import NODE, Easy

Admits = Callable[[Job], bool]


def not_of(namespace: str) -> Admits:
    def admits(job: Job) -> bool:
        return job.pods[0].metadata.namespace != namespace

    return admits


def tried(easy: Easy, admits: Admits) -> list[str]:
    """Those that are ready and admitted, in order; all of them placed."""
    found = []
    while easy.room.ready:
        easy.room.tick()
        turn = easy.room.pop(admits)
        if turn is not None:
            found.append(easy.place(turn).job.pods[0].metadata.name)
    return found


@pytest.mark.parametrize("kind", ["", "same"], ids=["each of its own kind", "all alike"])
def test_others_pass_those_that_are_not_admitted_and_these_keep_their_order(kind: str) -> None:
    easy = Easy()
    for i in range(4):
        easy.add(f"evil-{i}", kind, namespace="evil")
        easy.add(f"shop-{i}", kind, namespace="shop")
    assert tried(easy, not_of("evil")) == ["shop-0", "shop-1", "shop-2", "shop-3"]
    assert easy.room.waiting(Place.ACTIVE).pods == 4, "they are ready, and count as such"
    assert (easy.room.ready, easy.room.next_time()) == (False, None)
    easy.add("late", namespace="shop")
    assert tried(easy, not_of("evil")) == ["late"]
    easy.room.release("evil", 1 if kind else 4)
    assert tried(easy, not_of("shop")) == ["evil-0", "evil-1", "evil-2", "evil-3"]


def test_as_many_kinds_are_released_as_may_be_tried() -> None:
    easy = Easy()
    for i in range(5):
        easy.add(f"evil-{i}", namespace="evil")
    assert tried(easy, not_of("evil")) == []
    easy.room.release("evil", 2)
    easy.room.release("shop", 2)
    assert tried(easy, not_of("shop")) == ["evil-0", "evil-1"]
    assert not easy.room.ready


@pytest.mark.parametrize("what", ["deleted", "changed", "refused while another flew"])
def test_what_befalls_a_job_that_was_set_aside(what: str) -> None:
    easy = Easy()
    keys = [easy.add(f"evil-{i}", "same", namespace="evil") for i in range(3)]
    assert tried(easy, not_of("evil")) == []
    easy.room.release("evil", 1)
    flying = easy.pop()
    assert tried(easy, not_of("evil")) == []
    if what == "deleted":
        assert easy.room.delete(keys[1])
    elif what == "changed":
        easy.add("evil-1", "other", namespace="evil")
        assert tried(easy, not_of("evil")) == []
    else:
        easy.refuse("Room", turn=flying)
        assert easy.room.place(keys[1]) is Place.UNSCHEDULABLE
        easy.clock.advance(60.0)
        easy.happens(NODE)
        assert tried(easy, not_of("shop")) == ["evil-0", "evil-1", "evil-2"]
        return
    easy.place(flying)
    easy.room.release("evil", 9)
    expected = {"deleted": ["evil-2"], "changed": ["evil-1", "evil-2"]}
    assert tried(easy, not_of("shop")) == expected[what]


def test_one_call_sets_aside_a_bounded_number() -> None:
    easy = Easy()
    portion = easy.room.policy.portion
    for i in range(portion + 1):
        easy.add(f"evil-{i}", namespace="evil")
    aside = []
    while easy.room.ready:
        assert easy.room.pop(not_of("evil")) is None
        aside.append(sum(map(len, easy.room._lines.places.aside.values())))
    assert aside == [portion // 2, portion, portion + 1], "each moves to a line of its namespace first"


def test_the_most_urgent_of_those_aside_are_released_first() -> None:
    easy = Easy()
    for i in range(3):
        easy.add(f"evil-{i}", priority=i, namespace="evil")
        assert tried(easy, not_of("evil")) == []
    released = []
    for _ in range(3):
        easy.room.release("evil", 1)
        released += tried(easy, not_of("shop"))
    assert released == ["evil-2", "evil-1", "evil-0"]
