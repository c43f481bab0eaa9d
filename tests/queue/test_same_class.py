"""Jobs that are alike are refused together, woken together, and tried one at a time."""

from collections import Counter
from collections.abc import Callable

import msgspec
import pytest

from kubenexus.api.core import ClaimVolume, EphemeralVolume, Pod, Volume
from kubenexus.base.clock import VirtualClock
from kubenexus.framework.job import Job
from kubenexus.framework.pod_signature import PodSigner
from kubenexus.framework.verdict import Code
from kubenexus.plugins import profile_plugins
from kubenexus.queue.backoff_policy import BackoffPolicy
from kubenexus.queue.job_signature import sign_job
from kubenexus.queue.queue_profile import QueueProfile
from kubenexus.queue.queued_job import QueueState
from kubenexus.queue.scheduling_queue import SchedulingQueue
from kubenexus.testing.builders import a_pod
from tests.queue.queue_fixture import LEFT, NODE, WAKES, QueueFixture, by_image, job_of, refusal


def test_a_refusal_of_one_is_a_refusal_of_all_like_it() -> None:
    fixture = QueueFixture()
    keys = [fixture.add(f"p{i}", kind="k", since=float(i)) for i in range(5)]
    attempt = fixture.refuse("Room")
    assert attempt.job.key == keys[0]
    assert [fixture.queue.state(key) for key in keys] == [QueueState.UNSCHEDULABLE] * 5
    assert fixture.queue.pop() is None
    said = fixture.queue.last_decision(keys[4])
    assert said is not None
    assert said.diagnosis.refused_by == ("Room",)
    assert sorted(fixture.queue.same_class(keys[2])) == keys


def test_one_that_comes_later_shares_the_refusal_without_being_tried() -> None:
    fixture = QueueFixture()
    fixture.add("first", kind="k")
    fixture.refuse("Room")
    late = fixture.add("late", kind="k")
    assert fixture.queue.state(late) is QueueState.UNSCHEDULABLE
    assert fixture.queue.attempts(late) == 0
    assert fixture.queue.last_decision(late) is not None


def test_one_of_another_kind_is_tried() -> None:
    fixture = QueueFixture()
    fixture.add("first", kind="k")
    fixture.refuse("Room")
    assert fixture.queue.state(fixture.add("other")) is QueueState.ACTIVE


def test_one_that_comes_after_something_happened_is_tried_at_once_and_the_oldest_goes_first() -> None:
    fixture = QueueFixture()
    fixture.add("first", kind="k", since=1.0)
    fixture.refuse("Room")
    fixture.queue.on_event(NODE)
    assert fixture.queue.pending(QueueState.BACKOFF).jobs == 1
    fixture.add("late", kind="k", since=2.0)
    assert fixture.queue.pending(QueueState.ACTIVE).jobs == 2
    assert fixture.popped() == ["first", "late"]


def test_one_that_comes_while_its_kind_fails_waits_with_it() -> None:
    fixture = QueueFixture()
    fixture.add("first", kind="k")
    fixture.refuse(code=Code.ERROR)
    assert fixture.queue.state(fixture.add("late", kind="k")) is QueueState.BACKOFF


def test_and_is_tried_at_once_if_anything_happened_since() -> None:
    """There were no nodes, and now there is one."""
    fixture = QueueFixture()
    fixture.add("first", kind="k")
    fixture.refuse()
    fixture.queue.on_event(NODE)
    assert fixture.queue.state(fixture.add("late", kind="k")) is QueueState.ACTIVE


def test_all_that_are_alike_are_woken_and_the_first_refusal_sends_all_back() -> None:
    fixture = QueueFixture()
    for i in range(10):
        fixture.add(f"p{i}", kind="k", since=float(i))
    fixture.refuse("Room")
    fixture.clock.advance(60)
    assert fixture.queue.on_event(NODE) == 1
    assert fixture.place().job.key == "default/p0"
    assert fixture.refuse("Room").job.key == "default/p1"
    assert fixture.queue.pending(QueueState.UNSCHEDULABLE).jobs == 9
    assert fixture.queue.pop() is None


def test_a_line_is_forgotten_with_its_last_job() -> None:
    fixture = QueueFixture()
    for i in range(3):
        fixture.add(f"p{i}", kind="k")
    fixture.refuse("Room")
    for i in range(3):
        fixture.queue.delete(f"default/p{i}")
    assert len(fixture.queue._job_classes) == 0
    assert fixture.queue.state(fixture.add("new", kind="k")) is QueueState.ACTIVE, (
        "nobody is left to share a refusal with"
    )


def test_one_that_could_not_be_bound_backs_off_alone() -> None:
    fixture = QueueFixture()
    keys = [fixture.add(f"p{i}", kind="k", since=float(i)) for i in range(3)]
    assert fixture.queue.bind_failed(fixture.pop()) is QueueState.BACKOFF
    assert fixture.popped() == ["p1", "p2"]
    fixture.clock.advance(1.0)
    assert fixture.pop().job.key == keys[0]


def test_binds_that_fail_in_a_row_back_off_longer_and_longer() -> None:
    fixture = QueueFixture()
    fixture.add("p")
    waits = []
    for _ in range(5):
        fixture.queue.bind_failed(fixture.pop())
        waits.append((fixture.queue.next_due() or 0) - fixture.clock.now())
        fixture.clock.advance(waits[-1])
    assert waits == [1, 2, 4, 8, 10]


def test_a_job_that_is_activated_is_tried_alone() -> None:
    fixture = QueueFixture()
    keys = [fixture.add(f"p{i}", kind="k", since=float(i)) for i in range(3)]
    fixture.refuse("Room")
    assert fixture.queue.activate(keys[2]) is QueueState.ACTIVE
    assert fixture.refuse("Room").job.key == keys[2]
    assert [fixture.queue.state(key) for key in keys] == [QueueState.UNSCHEDULABLE] * 3
    assert sorted(fixture.queue.same_class(keys[2])) == keys


def test_an_event_below_a_ceiling_does_not_concern_jobs_above_it() -> None:
    fixture = QueueFixture()
    low, high = fixture.add("low", priority=1), fixture.add("high", priority=9)
    fixture.refuse("Ports")
    fixture.refuse("Ports")
    fixture.clock.advance(60)
    assert fixture.queue.on_event(msgspec.structs.replace(LEFT, max_priority=5)) == 1
    assert (fixture.queue.state(low), fixture.queue.state(high)) == (QueueState.ACTIVE, QueueState.UNSCHEDULABLE)


def by_labels_asked_about(asked: list[str]) -> Callable[[Pod], bytes]:
    return lambda pod: repr([(key, pod.metadata.labels.get(key)) for key in asked]).encode()


def test_when_signatures_mean_something_else_each_job_finds_those_like_it_as_its_turn_comes() -> None:
    """The terms of some pod ask about a label from now on, and jobs that were alike no longer are."""
    asked: list[str] = []
    fixture = QueueFixture(context=lambda: tuple(asked), sign=by_labels_asked_about(asked))
    red = [fixture.add(f"red{i}", labels={"colour": "red"}, since=float(i)) for i in range(3)]
    blue = [fixture.add(f"blue{i}", labels={"colour": "blue"}, since=float(i + 3)) for i in range(3)]
    fixture.refuse("Room")
    assert fixture.queue.pending(QueueState.UNSCHEDULABLE).jobs == 6
    asked.append("colour")
    fixture.clock.advance(60)
    assert fixture.queue.on_event(NODE) == 1
    assert fixture.refuse("Room").job.key == red[0]
    assert fixture.pop().job.key == blue[0]
    assert [fixture.queue.state(key) for key in red] == [QueueState.UNSCHEDULABLE] * 3, "each as its turn came"


def test_what_other_signatures_mean_wakes_no_job() -> None:
    """A new label that terms ask about lets no job in, and any tenant may name one as often as it likes."""
    asked: list[str] = []
    fixture = QueueFixture(context=lambda: tuple(asked), sign=by_labels_asked_about(asked))
    parked = fixture.add("parked", since=1.0)
    fixture.refuse("Room")
    backing = fixture.add("backing", priority=1, since=2.0)
    fixture.queue.bind_failed(fixture.pop())
    for i in range(5):
        asked.append(f"key{i}")
        fixture.clock.advance(0.1)
        assert fixture.queue.pop() is None
        assert (fixture.queue.state(parked), fixture.queue.state(backing)) == (
            QueueState.UNSCHEDULABLE,
            QueueState.BACKOFF,
        )


def test_a_job_that_is_signed_again_backs_off_as_long_as_it_would_have() -> None:
    asked: list[str] = []
    fixture = QueueFixture(context=lambda: tuple(asked), sign=by_labels_asked_about(asked))
    fixture.add("p")
    waits = []
    for i in range(5):
        fixture.refuse("Room")
        asked.append(f"key{i}")
        fixture.queue.on_event(NODE)
        waits.append((fixture.queue.next_due() or 0) - fixture.clock.now())
        fixture.clock.advance(waits[-1])
    assert waits == [1, 2, 4, 8, 10]


@pytest.mark.parametrize("kinds", [1, 100], ids=["all are alike", "each is like no other"])
def test_one_call_signs_no_more_than_a_portion_again(kinds: int) -> None:
    """Counted, for each call there is: 100 jobs wait, each is signed once, and at most 10 of them in one call."""
    asked: list[str] = []
    signed = Counter[str]()

    def sign(pod: Pod) -> bytes:
        signed["in all"] += 1
        return by_labels_asked_about(["kind", *asked])(pod)

    fixture = QueueFixture(BackoffPolicy(pop_from_backoff=False, portion=10), context=lambda: tuple(asked), sign=sign)
    jobs = [fixture.add(f"p{i:02}", labels={"kind": f"{i % kinds}"}, since=float(i)) for i in range(100)]
    for _ in range(kinds):
        fixture.refuse("Room")
    fixture.clock.advance(60)
    asked.append("colour")
    signed.clear()
    fixture.queue.tick()
    assert fixture.happens(NODE) == kinds
    assert signed["in all"] == 0
    tried = list[str]()
    while fixture.queue.has_ready:
        before, attempt = signed["in all"], fixture.queue.pop()
        if attempt is not None:
            tried.append(attempt.job.key)
            fixture.refuse("Room", attempt=attempt)
        assert signed["in all"] - before <= 10
    assert tried == jobs[:kinds], "one of each kind, in the order they came"
    assert signed["in all"] == 100


def test_when_refusals_rest_on_something_else_all_are_woken_a_portion_a_call() -> None:
    """No event says whom it concerns; and who is not yet woken comes first when it happens again."""
    chosen = [0]
    fixture = QueueFixture(BackoffPolicy(pop_from_backoff=False, portion=10), selectors=lambda: chosen[0])
    jobs = [fixture.add(f"p{i}") for i in range(30)]
    for _ in jobs:
        fixture.refuse("Room")
    fixture.clock.advance(60)
    woken = []
    for _ in range(3):
        chosen[0] += 1
        fixture.queue.tick()
        woken.append(fixture.queue.pending(QueueState.ACTIVE).jobs)
    assert woken == [10, 20, 30]
    fixture.queue.tick()
    assert not fixture.queue._job_classes.any_to_ask


def test_that_may_happen_while_a_job_is_in_flight() -> None:
    asked: list[str] = []
    fixture = QueueFixture(context=lambda: tuple(asked), sign=lambda pod: repr(asked).encode())
    fixture.add("a", since=1.0)
    fixture.add("b", since=2.0)
    attempt = fixture.pop()
    asked.append("colour")
    fixture.refuse("Room", attempt=attempt)
    assert fixture.queue.state("default/a") is QueueState.ACTIVE, "what was decided is not about its new kind"
    assert fixture.popped() == ["a", "b"]


def test_what_is_said_of_one_namespace_has_no_other_job_signed_again() -> None:
    """And those of the namespace when they are the first of their line: a term more lets no job in, so what refuses
    those that it does not mean refuses them as well."""
    scope, signed = {"red": 0, "blue": 0}, Counter[str]()

    def sign(pod: Pod) -> bytes:
        signed[pod.metadata.namespace] += 1
        said = scope[pod.metadata.namespace]
        return by_image(pod) + (f"{pod.metadata.namespace} {said}".encode() if said else b"")

    fixture = QueueFixture(sign=sign, scope=lambda pod: scope[pod.metadata.namespace])
    for i in range(6):
        fixture.add(f"p{i}", "k", namespace=("red", "blue")[i % 2], since=float(i))
    fixture.refuse("Room")
    assert len(fixture.queue._job_classes) == 1, "none is set apart"
    for said, again in ((1, {"red": 1}), (2, {"red": 1}), (2, {})):
        scope["red"] = said
        signed.clear()
        fixture.clock.advance(60)
        fixture.queue.on_event(NODE)
        while fixture.queue.has_ready:
            attempt = fixture.queue.pop()
            if attempt is not None:
                fixture.refuse("Room", attempt=attempt)
        assert signed == again
        assert fixture.queue.pending(QueueState.UNSCHEDULABLE).jobs == 6
    fixture.clock.advance(60)
    fixture.queue.on_event(NODE)
    assert fixture.popped() == [f"p{i}" for i in range(6)]
    assert signed == {"red": 2}, "the others, as their turn came"


def test_a_job_that_cannot_be_signed_is_tried_whatever_is_said_of_its_namespace() -> None:
    def broken(pod: Pod) -> bytes:
        raise ValueError(pod.key)

    scope = [0]
    fixture = QueueFixture(sign=broken, scope=lambda pod: scope[0])
    fixture.add("a")
    for _ in range(3):
        scope[0] += 1
        fixture.refuse("Room")
        fixture.clock.advance(60)
        fixture.queue.on_event(NODE)
    assert fixture.popped() == ["a"]


def test_a_job_that_cannot_be_signed_waits_by_itself() -> None:
    def broken(pod: Pod) -> bytes:
        raise ValueError(pod.key)

    fixture = QueueFixture(sign=broken)
    fixture.add("a", kind="k", since=1.0)
    fixture.add("b", kind="k", since=2.0)
    fixture.refuse("Room")
    assert fixture.popped() == ["b"]


def test_each_profile_has_rules_of_its_own() -> None:
    clock = VirtualClock(0.0)
    picky = QueueProfile(by_image, {"Room": WAKES["Ports"]})
    queue = SchedulingQueue({"": QueueProfile(by_image, WAKES), "picky": picky}, clock)
    for name in ("picky", "default-scheduler"):
        queue.add(job_of(name, kind="k", scheduler_name=name))
        attempt = queue.pop()
        assert attempt is not None
        queue.done(attempt, refusal(attempt, "Room"))
    clock.advance(60)
    assert queue.on_event(LEFT) == 1
    assert queue.state("default/picky") is QueueState.ACTIVE
    assert queue.on_event(NODE) == 1
    assert queue.state("default/default-scheduler") is QueueState.ACTIVE


# --- which jobs are alike -----------------------------------------------------------------------------------------

SIGN = PodSigner(profile_plugins().reads).sign
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
    assert (sign_job(first, SIGN).digest == sign_job(second, SIGN).digest) is alike


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
    assert (sign_job(one, by_image).digest == sign_job(other, by_image).digest) is alike


def test_gangs_are_alike_if_they_have_as_many_of_each_sort_and_need_as_many() -> None:
    def gang(name: str, workers: int, minimum: int) -> Job:
        pods = (a_pod(f"{name}-driver", cpu=4), *(a_pod(f"{name}-{i}", cpu=1) for i in range(workers)))
        return Job(f"default/{name}", pods, minimum)

    kind = sign_job(gang("a", 3, 4), SIGN)
    assert kind.digest == sign_job(gang("b", 3, 4), SIGN).digest
    assert kind.digest != sign_job(gang("b", 4, 4), SIGN).digest
    assert kind.digest != sign_job(gang("b", 3, 3), SIGN).digest
    assert [pod.metadata.name for pod in kind.sample_pods] == ["a-driver", "a-0"]
