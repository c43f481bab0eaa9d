"""Jobs that are alike are refused together, woken together, and tried one at a time."""

from collections import Counter
from collections.abc import Callable

import msgspec
import pytest

from kubenexus.api.core import ClaimVolume, EphemeralVolume, Pod, Volume
from kubenexus.base.clock import VirtualClock
from kubenexus.framework.job import Job
from kubenexus.framework.signature import Signer
from kubenexus.framework.verdict import Code
from kubenexus.plugins import lineup
from kubenexus.queue.entry import Place
from kubenexus.queue.kind import kind_of
from kubenexus.queue.policy import Policy
from kubenexus.queue.room import WaitingRoom
from kubenexus.queue.rules import Rules
from kubenexus.testing.builders import a_pod
from tests.queue.easy import LEFT, NODE, WAKES, Easy, by_image, job_of, refusal


def test_a_refusal_of_one_is_a_refusal_of_all_like_it() -> None:
    easy = Easy()
    keys = [easy.add(f"p{i}", kind="k", since=float(i)) for i in range(5)]
    turn = easy.refuse("Room")
    assert turn.job.key == keys[0]
    assert [easy.room.place(key) for key in keys] == [Place.UNSCHEDULABLE] * 5
    assert easy.room.pop() is None
    said = easy.room.verdict(keys[4])
    assert said is not None
    assert said.diagnosis.refused_by == ("Room",)
    assert sorted(easy.room.alike(keys[2])) == keys


def test_one_that_comes_later_shares_the_refusal_without_being_tried() -> None:
    easy = Easy()
    easy.add("first", kind="k")
    easy.refuse("Room")
    late = easy.add("late", kind="k")
    assert easy.room.place(late) is Place.UNSCHEDULABLE
    assert easy.room.attempts(late) == 0
    assert easy.room.verdict(late) is not None


def test_one_of_another_kind_is_tried() -> None:
    easy = Easy()
    easy.add("first", kind="k")
    easy.refuse("Room")
    assert easy.room.place(easy.add("other")) is Place.ACTIVE


def test_one_that_comes_after_something_happened_is_tried_at_once_and_the_oldest_goes_first() -> None:
    easy = Easy()
    easy.add("first", kind="k", since=1.0)
    easy.refuse("Room")
    easy.room.on_event(NODE)
    assert easy.room.waiting(Place.BACKOFF).jobs == 1
    easy.add("late", kind="k", since=2.0)
    assert easy.room.waiting(Place.ACTIVE).jobs == 2
    assert easy.popped() == ["first", "late"]


def test_one_that_comes_while_its_kind_fails_waits_with_it() -> None:
    easy = Easy()
    easy.add("first", kind="k")
    easy.refuse(code=Code.ERROR)
    assert easy.room.place(easy.add("late", kind="k")) is Place.BACKOFF


def test_and_is_tried_at_once_if_anything_happened_since() -> None:
    """There were no nodes, and now there is one."""
    easy = Easy()
    easy.add("first", kind="k")
    easy.refuse()
    easy.room.on_event(NODE)
    assert easy.room.place(easy.add("late", kind="k")) is Place.ACTIVE


def test_all_that_are_alike_are_woken_and_the_first_refusal_sends_all_back() -> None:
    easy = Easy()
    for i in range(10):
        easy.add(f"p{i}", kind="k", since=float(i))
    easy.refuse("Room")
    easy.clock.advance(60)
    assert easy.room.on_event(NODE) == 1
    assert easy.place().job.key == "default/p0"
    assert easy.refuse("Room").job.key == "default/p1"
    assert easy.room.waiting(Place.UNSCHEDULABLE).jobs == 9
    assert easy.room.pop() is None


def test_a_line_is_forgotten_with_its_last_job() -> None:
    easy = Easy()
    for i in range(3):
        easy.add(f"p{i}", kind="k")
    easy.refuse("Room")
    for i in range(3):
        easy.room.delete(f"default/p{i}")
    assert len(easy.room._lines) == 0
    assert easy.room.place(easy.add("new", kind="k")) is Place.ACTIVE, "nobody is left to share a refusal with"


def test_one_that_could_not_be_bound_backs_off_alone() -> None:
    easy = Easy()
    keys = [easy.add(f"p{i}", kind="k", since=float(i)) for i in range(3)]
    assert easy.room.failed(easy.pop()) is Place.BACKOFF
    assert easy.popped() == ["p1", "p2"]
    easy.clock.advance(1.0)
    assert easy.pop().job.key == keys[0]


def test_binds_that_fail_in_a_row_back_off_longer_and_longer() -> None:
    easy = Easy()
    easy.add("p")
    waits = []
    for _ in range(5):
        easy.room.failed(easy.pop())
        waits.append((easy.room.next_time() or 0) - easy.clock.now())
        easy.clock.advance(waits[-1])
    assert waits == [1, 2, 4, 8, 10]


def test_a_job_that_is_activated_is_tried_alone() -> None:
    easy = Easy()
    keys = [easy.add(f"p{i}", kind="k", since=float(i)) for i in range(3)]
    easy.refuse("Room")
    assert easy.room.activate(keys[2]) is Place.ACTIVE
    assert easy.refuse("Room").job.key == keys[2]
    assert [easy.room.place(key) for key in keys] == [Place.UNSCHEDULABLE] * 3
    assert sorted(easy.room.alike(keys[2])) == keys


def test_an_event_below_a_ceiling_does_not_concern_jobs_above_it() -> None:
    easy = Easy()
    low, high = easy.add("low", priority=1), easy.add("high", priority=9)
    easy.refuse("Ports")
    easy.refuse("Ports")
    easy.clock.advance(60)
    assert easy.room.on_event(msgspec.structs.replace(LEFT, ceiling=5)) == 1
    assert (easy.room.place(low), easy.room.place(high)) == (Place.ACTIVE, Place.UNSCHEDULABLE)


def by_labels_asked_about(asked: list[str]) -> Callable[[Pod], bytes]:
    return lambda pod: repr([(key, pod.metadata.labels.get(key)) for key in asked]).encode()


def test_when_signatures_mean_something_else_each_job_finds_those_like_it_as_its_turn_comes() -> None:
    """The terms of some pod ask about a label from now on, and jobs that were alike no longer are."""
    asked: list[str] = []
    easy = Easy(context=lambda: tuple(asked), sign=by_labels_asked_about(asked))
    red = [easy.add(f"red{i}", labels={"colour": "red"}, since=float(i)) for i in range(3)]
    blue = [easy.add(f"blue{i}", labels={"colour": "blue"}, since=float(i + 3)) for i in range(3)]
    easy.refuse("Room")
    assert easy.room.waiting(Place.UNSCHEDULABLE).jobs == 6
    asked.append("colour")
    easy.clock.advance(60)
    assert easy.room.on_event(NODE) == 1
    assert easy.refuse("Room").job.key == red[0]
    assert easy.pop().job.key == blue[0]
    assert [easy.room.place(key) for key in red] == [Place.UNSCHEDULABLE] * 3, "each as its turn came"


def test_what_other_signatures_mean_wakes_no_job() -> None:
    """A new label that terms ask about lets no job in, and any tenant may name one as often as it likes."""
    asked: list[str] = []
    easy = Easy(context=lambda: tuple(asked), sign=by_labels_asked_about(asked))
    parked = easy.add("parked", since=1.0)
    easy.refuse("Room")
    backing = easy.add("backing", priority=1, since=2.0)
    easy.room.failed(easy.pop())
    for i in range(5):
        asked.append(f"key{i}")
        easy.clock.advance(0.1)
        assert easy.room.pop() is None
        assert (easy.room.place(parked), easy.room.place(backing)) == (Place.UNSCHEDULABLE, Place.BACKOFF)


def test_a_job_that_is_signed_again_backs_off_as_long_as_it_would_have() -> None:
    asked: list[str] = []
    easy = Easy(context=lambda: tuple(asked), sign=by_labels_asked_about(asked))
    easy.add("p")
    waits = []
    for i in range(5):
        easy.refuse("Room")
        asked.append(f"key{i}")
        easy.room.on_event(NODE)
        waits.append((easy.room.next_time() or 0) - easy.clock.now())
        easy.clock.advance(waits[-1])
    assert waits == [1, 2, 4, 8, 10]


@pytest.mark.parametrize("kinds", [1, 100], ids=["all are alike", "each is like no other"])
def test_one_call_signs_no_more_than_a_portion_again(kinds: int) -> None:
    """Counted, for each call there is: 100 jobs wait, each is signed once, and at most 10 of them in one call."""
    asked: list[str] = []
    signed = Counter[str]()

    def sign(pod: Pod) -> bytes:
        signed["in all"] += 1
        return by_labels_asked_about(["kind", *asked])(pod)

    easy = Easy(Policy(eager=False, portion=10), context=lambda: tuple(asked), sign=sign)
    jobs = [easy.add(f"p{i:02}", labels={"kind": f"{i % kinds}"}, since=float(i)) for i in range(100)]
    for _ in range(kinds):
        easy.refuse("Room")
    easy.clock.advance(60)
    asked.append("colour")
    signed.clear()
    easy.room.tick()
    assert easy.happens(NODE) == kinds
    assert signed["in all"] == 0
    tried = list[str]()
    while easy.room.ready:
        before, turn = signed["in all"], easy.room.pop()
        if turn is not None:
            tried.append(turn.job.key)
            easy.refuse("Room", turn=turn)
        assert signed["in all"] - before <= 10
    assert tried == jobs[:kinds], "one of each kind, in the order they came"
    assert signed["in all"] == 100


def test_when_refusals_rest_on_something_else_all_are_woken_a_portion_a_call() -> None:
    """No event says whom it concerns; and who is not yet woken comes first when it happens again."""
    chosen = [0]
    easy = Easy(Policy(eager=False, portion=10), selectors=lambda: chosen[0])
    jobs = [easy.add(f"p{i}") for i in range(30)]
    for _ in jobs:
        easy.refuse("Room")
    easy.clock.advance(60)
    woken = []
    for _ in range(3):
        chosen[0] += 1
        easy.room.tick()
        woken.append(easy.room.waiting(Place.ACTIVE).jobs)
    assert woken == [10, 20, 30]
    easy.room.tick()
    assert not easy.room._lines.any_to_ask


def test_that_may_happen_while_a_job_is_in_flight() -> None:
    asked: list[str] = []
    easy = Easy(context=lambda: tuple(asked), sign=lambda pod: repr(asked).encode())
    easy.add("a", since=1.0)
    easy.add("b", since=2.0)
    turn = easy.pop()
    asked.append("colour")
    easy.refuse("Room", turn=turn)
    assert easy.room.place("default/a") is Place.ACTIVE, "what was decided is not about its new kind"
    assert easy.popped() == ["a", "b"]


def test_what_is_said_of_one_namespace_has_no_other_job_signed_again() -> None:
    """And those of the namespace when they are the first of their line: a term more lets no job in, so what refuses
    those that it does not mean refuses them as well."""
    scope, signed = {"red": 0, "blue": 0}, Counter[str]()

    def sign(pod: Pod) -> bytes:
        signed[pod.metadata.namespace] += 1
        said = scope[pod.metadata.namespace]
        return by_image(pod) + (f"{pod.metadata.namespace} {said}".encode() if said else b"")

    easy = Easy(sign=sign, scope=scope.__getitem__)
    for i in range(6):
        easy.add(f"p{i}", "k", namespace=("red", "blue")[i % 2], since=float(i))
    easy.refuse("Room")
    assert len(easy.room._lines) == 1, "none is set apart"
    for said, again in ((1, {"red": 1}), (2, {"red": 1}), (2, {})):
        scope["red"] = said
        signed.clear()
        easy.clock.advance(60)
        easy.room.on_event(NODE)
        while easy.room.ready:
            turn = easy.room.pop()
            if turn is not None:
                easy.refuse("Room", turn=turn)
        assert signed == again
        assert easy.room.waiting(Place.UNSCHEDULABLE).jobs == 6
    easy.clock.advance(60)
    easy.room.on_event(NODE)
    assert easy.popped() == [f"p{i}" for i in range(6)]
    assert signed == {"red": 2}, "the others, as their turn came"


def test_a_job_that_cannot_be_signed_is_tried_whatever_is_said_of_its_namespace() -> None:
    def broken(pod: Pod) -> bytes:
        raise ValueError(pod.key)

    scope = [0]
    easy = Easy(sign=broken, scope=lambda namespace: scope[0])
    easy.add("a")
    for _ in range(3):
        scope[0] += 1
        easy.refuse("Room")
        easy.clock.advance(60)
        easy.room.on_event(NODE)
    assert easy.popped() == ["a"]


def test_a_job_that_cannot_be_signed_waits_by_itself() -> None:
    def broken(pod: Pod) -> bytes:
        raise ValueError(pod.key)

    easy = Easy(sign=broken)
    easy.add("a", kind="k", since=1.0)
    easy.add("b", kind="k", since=2.0)
    easy.refuse("Room")
    assert easy.popped() == ["b"]


def test_each_profile_has_rules_of_its_own() -> None:
    clock = VirtualClock(0.0)
    picky = Rules(by_image, {"Room": WAKES["Ports"]})
    room = WaitingRoom({"": Rules(by_image, WAKES), "picky": picky}, clock)
    for name in ("picky", "default-scheduler"):
        room.add(job_of(name, kind="k", scheduler_name=name))
        turn = room.pop()
        assert turn is not None
        room.done(turn, refusal(turn, "Room"))
    clock.advance(60)
    assert room.on_event(LEFT) == 1
    assert room.place("default/picky") is Place.ACTIVE
    assert room.on_event(NODE) == 1
    assert room.place("default/default-scheduler") is Place.ACTIVE


# --- which jobs are alike -----------------------------------------------------------------------------------------

SIGN = Signer(lineup().reads).sign
PINNED = {"requires": ["metadata.name In n1"]}


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        pytest.param({}, {}, True, id="pods of one template"),
        pytest.param({"labels": {"index": "1"}}, {"labels": {"index": "2"}}, True, id="labels nobody selects by"),
        pytest.param({"cpu": 1}, {"cpu": 2}, False, id="another request"),
        pytest.param({"priority": 1}, {"priority": 2}, False, id="another priority: nominated pods yield to it or not"),
        pytest.param({"nominated": "n1"}, {}, False, id="one has a nomination"),
        pytest.param({"scheduler_name": "a"}, {"scheduler_name": "b"}, False, id="another profile"),
        pytest.param({"requires": ["metadata.name In n1"]}, PINNED, True, id="made for the same node"),
        pytest.param({"requires": ["metadata.name In n2"]}, PINNED, False, id="DaemonSet pods for different nodes"),
    ],
)
def test_which_pods_are_alike(one: dict, other: dict, alike: bool) -> None:
    first, second = Job.of(a_pod("a", **one)), Job.of(a_pod("b", **other))
    assert (kind_of(first, SIGN).signature == kind_of(second, SIGN).signature) is alike


def _with(volume: Volume, pod: str, namespace: str = "default") -> Job:
    made = a_pod(pod, namespace=namespace)
    return Job.of(msgspec.structs.replace(made, spec=msgspec.structs.replace(made.spec, volumes=[volume])))


def _claim(name: str) -> Volume:
    return Volume(name="data", persistent_volume_claim=ClaimVolume(claim_name=name))


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        pytest.param(_with(Volume(name="x"), "a"), _with(Volume(name="y"), "b"), True, id="names that were made up"),
        pytest.param(_with(_claim("c"), "a"), _with(_claim("c"), "b"), True, id="the same claim"),
        pytest.param(_with(_claim("c"), "a"), _with(_claim("d"), "b"), False, id="different claims"),
        pytest.param(_with(_claim("c"), "a"), _with(_claim("c"), "b", "other"), False, id="claims of other namespaces"),
        pytest.param(
            _with(Volume(ephemeral=EphemeralVolume()), "a"),
            _with(Volume(ephemeral=EphemeralVolume()), "b"),
            False,
            id="ephemeral volumes: each pod has a claim of its own",
        ),
    ],
)
def test_volumes_count_by_what_they_ask_for(one: Job, other: Job, alike: bool) -> None:
    assert (kind_of(one, by_image).signature == kind_of(other, by_image).signature) is alike


def test_gangs_are_alike_if_they_have_as_many_of_each_sort_and_need_as_many() -> None:
    def gang(name: str, workers: int, minimum: int) -> Job:
        pods = (a_pod(f"{name}-driver", cpu=4), *(a_pod(f"{name}-{i}", cpu=1) for i in range(workers)))
        return Job(f"default/{name}", pods, minimum)

    kind = kind_of(gang("a", 3, 4), SIGN)
    assert kind.signature == kind_of(gang("b", 3, 4), SIGN).signature
    assert kind.signature != kind_of(gang("b", 4, 4), SIGN).signature
    assert kind.signature != kind_of(gang("b", 3, 3), SIGN).signature
    assert [pod.metadata.name for pod in kind.specimens] == ["a-driver", "a-0"]
