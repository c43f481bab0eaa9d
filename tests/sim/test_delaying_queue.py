"""A chore is handed out once, at its time, and not again while it is being done."""

from kubenexus.sim.delaying_queue import DelayingQueue


def due(chores: DelayingQueue, now: float, most: int = 100) -> list[tuple[str, str]]:
    return [(chore.what, chore.whom) for chore in chores.due(now, most)]


def test_what_is_due_comes_by_its_time_and_no_more_than_asked_for() -> None:
    chores = DelayingQueue()
    chores.plan("run", "b", 2.0)
    chores.plan("run", "a", 1.0)
    chores.plan("run", "c", 3.0)
    assert chores.next_due() == 1.0
    assert due(chores, 0.5) == []
    assert due(chores, 2.5, most=1) == [("run", "a")]
    assert due(chores, 2.5) == [("run", "b")]
    assert (len(chores), chores.next_due()) == (1, 3.0)


def test_planned_again_it_moves_and_planned_by_a_time_it_only_moves_forward() -> None:
    chores = DelayingQueue()
    chores.plan("run", "a", 1.0)
    chores.plan("run", "a", 5.0)
    assert due(chores, 4.0) == []
    chores.plan_by("run", "a", 9.0)
    assert chores.next_due() == 5.0
    chores.plan_by("run", "a", 3.0)
    assert chores.next_due() == 3.0


def test_while_it_is_being_done_it_waits() -> None:
    chores = DelayingQueue()
    chores.plan("run", "a", 1.0)
    (doing,) = chores.due(1.0, 1)
    chores.plan("run", "a", 1.0)
    chores.plan_by("run", "a", 1.0)
    assert due(chores, 2.0) == []
    chores.finish(doing)
    assert due(chores, 2.0) == [("run", "a")], "planned while it was being done: once more"


def test_what_is_dropped_is_not_done() -> None:
    chores = DelayingQueue()
    chores.plan("run", "a", 1.0)
    chores.plan("renew", "a", 1.0)
    chores.drop("run", "a")
    (doing,) = chores.due(1.0, 10)
    assert doing.what == "renew"
    chores.plan("renew", "a", 2.0)
    chores.drop("renew", "a")
    chores.finish(doing)
    assert chores.next_due() is None
