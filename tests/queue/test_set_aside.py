"""Jobs of a namespace that is not admitted for a while are set aside, and others pass them."""

from collections.abc import Callable

import pytest

from kubenexus.framework.job import Job
from kubenexus.queue.queued_job import QueueState
from tests.queue.queue_fixture import NODE, QueueFixture

Admits = Callable[[Job], bool]


def not_of(namespace: str) -> Admits:
    def admits(job: Job) -> bool:
        return job.pods[0].metadata.namespace != namespace

    return admits


def tried(fixture: QueueFixture, admits: Admits) -> list[str]:
    """Those that are ready and admitted, in order; all of them placed."""
    found = []
    while fixture.queue.has_ready:
        fixture.queue.tick()
        attempt = fixture.queue.pop(admits)
        if attempt is not None:
            found.append(fixture.place(attempt).job.pods[0].metadata.name)
    return found


@pytest.mark.parametrize("kind", ["", "same"], ids=["each of its own kind", "all alike"])
def test_others_pass_those_that_are_not_admitted_and_these_keep_their_order(kind: str) -> None:
    fixture = QueueFixture()
    for i in range(4):
        fixture.add(f"evil-{i}", kind, namespace="evil")
        fixture.add(f"shop-{i}", kind, namespace="shop")
    assert tried(fixture, not_of("evil")) == ["shop-0", "shop-1", "shop-2", "shop-3"]
    assert fixture.queue.pending(QueueState.ACTIVE).pods == 4, "they are ready, and count as such"
    assert (fixture.queue.has_ready, fixture.queue.next_due()) == (False, None)
    fixture.add("late", namespace="shop")
    assert tried(fixture, not_of("evil")) == ["late"]
    fixture.queue.release("evil", 1 if kind else 4)
    assert tried(fixture, not_of("shop")) == ["evil-0", "evil-1", "evil-2", "evil-3"]


def test_as_many_kinds_are_released_as_may_be_tried() -> None:
    fixture = QueueFixture()
    for i in range(5):
        fixture.add(f"evil-{i}", namespace="evil")
    assert tried(fixture, not_of("evil")) == []
    fixture.queue.release("evil", 2)
    fixture.queue.release("shop", 2)
    assert tried(fixture, not_of("shop")) == ["evil-0", "evil-1"]
    assert not fixture.queue.has_ready


@pytest.mark.parametrize("what", ["deleted", "changed", "refused while another flew"])
def test_what_befalls_a_job_that_was_set_aside(what: str) -> None:
    fixture = QueueFixture()
    keys = [fixture.add(f"evil-{i}", "same", namespace="evil") for i in range(3)]
    assert tried(fixture, not_of("evil")) == []
    fixture.queue.release("evil", 1)
    flying = fixture.pop()
    assert tried(fixture, not_of("evil")) == []
    if what == "deleted":
        assert fixture.queue.delete(keys[1])
    elif what == "changed":
        fixture.add("evil-1", "other", namespace="evil")
        assert tried(fixture, not_of("evil")) == []
    else:
        fixture.refuse("Room", attempt=flying)
        assert fixture.queue.state(keys[1]) is QueueState.UNSCHEDULABLE
        fixture.clock.advance(60.0)
        fixture.happens(NODE)
        assert tried(fixture, not_of("shop")) == ["evil-0", "evil-1", "evil-2"]
        return
    fixture.place(flying)
    fixture.queue.release("evil", 9)
    expected = {"deleted": ["evil-2"], "changed": ["evil-1", "evil-2"]}
    assert tried(fixture, not_of("shop")) == expected[what]


def test_one_call_sets_aside_a_bounded_number() -> None:
    fixture = QueueFixture()
    portion = fixture.queue.policy.portion
    for i in range(portion + 1):
        fixture.add(f"evil-{i}", namespace="evil")
    aside = []
    while fixture.queue.has_ready:
        assert fixture.queue.pop(not_of("evil")) is None
        aside.append(sum(map(len, fixture.queue._job_classes.sub_queues.aside.values())))
    assert aside == [portion // 2, portion, portion + 1], "each moves to a line of its namespace first"


def test_the_most_urgent_of_those_aside_are_released_first() -> None:
    fixture = QueueFixture()
    for i in range(3):
        fixture.add(f"evil-{i}", priority=i, namespace="evil")
        assert tried(fixture, not_of("evil")) == []
    released = []
    for _ in range(3):
        fixture.queue.release("evil", 1)
        released += tried(fixture, not_of("shop"))
    assert released == ["evil-2", "evil-1", "evil-0"]
