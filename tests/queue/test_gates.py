"""Jobs at a gate: in no line, never tried, and let in as soon as their gate opens."""

from typing import ClassVar

from kubenexus.api.core import Pod
from kubenexus.framework.events import Action, Event, Resource
from kubenexus.framework.job import Job
from kubenexus.framework.verdict import Verdict
from kubenexus.queue.changes import EVERYTHING
from kubenexus.queue.entry import Place
from kubenexus.queue.policy import Policy
from tests.queue.easy import NODE, Easy, a_gang, job_of

OPENS = Event(Resource.STORAGE_CLASS, Action.ADD)


def test_a_gated_job_is_not_tried() -> None:
    easy = Easy()
    key = easy.add("p", gates=["g"])
    assert easy.room.place(key) is Place.GATED
    assert easy.room.waiting(Place.GATED) == (1, 1)
    verdict = easy.room.gate(key)
    assert verdict is not None
    assert (verdict.plugin, verdict.reasons) == ("Gate", ("not yet",))
    assert easy.room.pop() is None


def test_it_comes_in_when_its_gates_are_taken_away() -> None:
    easy = Easy()
    easy.add("p", gates=["g", "h"], since=1.0)
    assert easy.room.add(job_of("p", gates=["h"])) is Place.GATED
    assert easy.room.add(job_of("p")) is Place.ACTIVE
    assert easy.pop().since == 1.0
    assert easy.room.waiting(Place.GATED) == (0, 0)


def test_one_gated_member_gates_its_gang() -> None:
    easy = Easy()
    gang = a_gang("g", 3)
    gated = job_of("g-2", kind="g", gates=["x"]).pods[0]
    assert easy.room.add(Job(gang.key, (*gang.pods[:2], gated), 3)) is Place.GATED
    assert easy.room.waiting(Place.GATED) == (1, 3)
    assert easy.room.add(gang) is Place.ACTIVE


def test_events_of_the_gates_plugin_have_it_asked_again() -> None:
    easy = Easy()
    easy.gate.shut.add("default/p")
    key = easy.add("p")
    easy.room.on_event(OPENS)
    assert easy.room.place(key) is Place.GATED
    easy.gate.shut.clear()
    easy.room.on_event(NODE)
    assert easy.room.place(key) is Place.GATED, "not an event of this gate"
    easy.room.on_event(OPENS)
    assert easy.room.place(key) is Place.ACTIVE


def test_an_event_for_all_has_every_gate_asked_again() -> None:
    easy = Easy()
    easy.gate.shut.add("default/p")
    key = easy.add("p")
    easy.gate.shut.clear()
    easy.room.on_event(EVERYTHING)
    assert easy.room.place(key) is Place.ACTIVE


def test_so_does_activating_the_job_and_every_flush() -> None:
    easy = Easy()
    easy.gate.shut.update(["default/p", "default/q"])
    p, q = easy.add("p"), easy.add("q")
    assert easy.room.activate(p) is Place.GATED
    assert easy.room.next_time() == 400.0
    easy.gate.shut.clear()
    assert easy.room.activate(p) is Place.ACTIVE
    easy.clock.advance(300)
    easy.room.tick()
    assert easy.room.place(q) is Place.ACTIVE


def test_a_job_that_became_gated_while_it_waited_is_stopped_at_the_door() -> None:
    easy = Easy()
    first, second = easy.add("p", since=1.0), easy.add("q", since=2.0)
    easy.gate.shut.add(first)
    assert easy.pop().job.key == second
    assert easy.room.place(first) is Place.GATED
    assert easy.room.attempts(first) == 0


def test_a_waiting_job_whose_update_gates_it_leaves_its_line() -> None:
    easy = Easy()
    easy.add("p", kind="k")
    easy.add("q", kind="k")
    easy.refuse("Room")
    assert easy.room.add(job_of("p", kind="k", gates=["g"])) is Place.GATED
    assert easy.room.waiting(Place.UNSCHEDULABLE) == (1, 1)
    assert easy.room.add(job_of("p", kind="k")) is Place.UNSCHEDULABLE, "its kind is still refused"


def test_a_gate_that_fails_is_shut() -> None:
    class Broken:
        name: ClassVar[str] = "Gate"
        reads: ClassVar[tuple[str, ...]] = ()

        def gate(self, pod: Pod) -> Verdict | None:
            raise RuntimeError("no idea")

    easy = Easy()
    easy.rules._gates = (Broken(),)
    key = easy.add("p")
    verdict = easy.room.gate(key)
    assert verdict is not None
    assert (verdict.plugin, verdict.reasons) == ("Gate", ("RuntimeError: no idea",))


def test_a_gated_job_can_be_deleted() -> None:
    easy = Easy()
    key = easy.add("p", gates=["g"])
    assert easy.room.delete(key)
    assert (len(easy.room), easy.room.waiting(Place.GATED), easy.room.next_time()) == (0, (0, 0), None)


def test_gates_are_asked_a_bounded_number_at_a_time() -> None:
    easy = Easy(Policy(eager=False, portion=3))
    for i in range(7):
        easy.add(f"p{i}", gates=["g"])
    easy.clock.advance(300)
    due = []
    for _ in range(3):
        due.append(easy.room.next_time() == 400.0)
        easy.room.tick()
    assert due == [True, True, True]
    assert easy.room.next_time() == 700.0
