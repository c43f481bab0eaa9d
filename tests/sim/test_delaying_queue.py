"""A work item is returned once, at its time, and not again while it is being processed."""

from kubenexus.sim.delaying_queue import DelayingQueue


def due(work_queue: DelayingQueue, now: float, most: int = 100) -> list[tuple[str, str]]:
    return [(item.what, item.whom) for item in work_queue.due(now, most)]


def test_what_is_due_comes_by_its_time_and_no_more_than_asked_for() -> None:
    work_queue = DelayingQueue()
    work_queue.plan("run", "b", 2.0)
    work_queue.plan("run", "a", 1.0)
    work_queue.plan("run", "c", 3.0)
    assert work_queue.next_due() == 1.0
    assert due(work_queue, 0.5) == []
    assert due(work_queue, 2.5, most=1) == [("run", "a")]
    assert due(work_queue, 2.5) == [("run", "b")]
    assert (len(work_queue), work_queue.next_due()) == (1, 3.0)


def test_planned_again_it_moves_and_planned_by_a_time_it_only_moves_forward() -> None:
    work_queue = DelayingQueue()
    work_queue.plan("run", "a", 1.0)
    work_queue.plan("run", "a", 5.0)
    assert due(work_queue, 4.0) == []
    work_queue.plan_by("run", "a", 9.0)
    assert work_queue.next_due() == 5.0
    work_queue.plan_by("run", "a", 3.0)
    assert work_queue.next_due() == 3.0


def test_while_it_is_being_done_it_waits() -> None:
    work_queue = DelayingQueue()
    work_queue.plan("run", "a", 1.0)
    (doing,) = work_queue.due(1.0, 1)
    work_queue.plan("run", "a", 1.0)
    work_queue.plan_by("run", "a", 1.0)
    assert due(work_queue, 2.0) == []
    work_queue.finish(doing)
    assert due(work_queue, 2.0) == [("run", "a")], "planned while it was being done: once more"


def test_what_is_dropped_is_not_done() -> None:
    work_queue = DelayingQueue()
    work_queue.plan("run", "a", 1.0)
    work_queue.plan("renew", "a", 1.0)
    work_queue.drop("run", "a")
    (doing,) = work_queue.due(1.0, 10)
    assert doing.what == "renew"
    work_queue.plan("renew", "a", 2.0)
    work_queue.drop("renew", "a")
    work_queue.finish(doing)
    assert work_queue.next_due() is None
