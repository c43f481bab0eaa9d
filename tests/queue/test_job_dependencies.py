"""Jobs that come after others: what is read, what a waiting job is told, cycles, and bounds."""

from collections import OrderedDict
from typing import Any

import pytest

from kubenexus.api.core import Pod
from kubenexus.api.job_dependencies import MAX_NAMES
from kubenexus.base.clock import VirtualClock
from kubenexus.queue import job_dependencies
from kubenexus.queue.job_dependencies import (
    FORGET_SECONDS,
    LOOK_SECONDS,
    MAX_STEPS,
    MAX_TRACKED,
    JobDependencies,
    JobName,
    JobOutcome,
)
from kubenexus.testing.builders import a_pod

AFTER = "scheduling.kubenexus.io/after"
GANG = "pod-group.scheduling.kubenexus.io/name"
JOB = "batch.kubernetes.io/job-name"


def waiting(name: str, after: str, namespace: str = "default", **fields: Any) -> Pod:
    return a_pod(name, namespace=namespace, annotations={AFTER: after}, **fields)


class Gate:
    def __init__(self) -> None:
        self.clock = VirtualClock(1000.0)
        self.dependencies = JobDependencies(self.clock)

    def why(self, pod: Pod) -> str:
        verdict = self.dependencies.pre_enqueue(pod)
        return "" if verdict is None else verdict.reasons[0]

    def set(self, name: str, outcome: JobOutcome, namespace: str = "default") -> list[str]:
        return self.dependencies.set(JobName(namespace, name), outcome)


def test_a_pod_without_the_annotation_passes_and_nothing_is_looked_up() -> None:
    gate = Gate()
    assert gate.why(a_pod("p")) == ""
    assert not gate.dependencies
    assert gate.dependencies.next_to_look_up() is None


def test_a_pod_passes_when_all_jobs_before_it_have_succeeded() -> None:
    gate, pod = Gate(), waiting("p", "a, b,,a")
    assert gate.why(pod) == "waits for jobs a, b to succeed"
    assert gate.set("a", JobOutcome.SUCCEEDED) == [pod.key]
    assert gate.why(pod) == "waits for job b to succeed"
    assert gate.set("b", JobOutcome.SUCCEEDED) == [pod.key]
    assert gate.why(pod) == ""
    assert gate.set("b", JobOutcome.SUCCEEDED) == [], "it is told once"


def test_the_reason_says_what_failed_and_what_is_missing() -> None:
    gate, pod = Gate(), waiting("p", "a,b,c")
    gate.why(pod)
    gate.set("a", JobOutcome.RUNNING)
    gate.set("b", JobOutcome.FAILED)
    gate.set("c", JobOutcome.MISSING)
    assert gate.why(pod) == "waits for job a to succeed; job b failed; there is no job c in this namespace"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param(",".join(f"j{i}" for i in range(17)), "has 17 names; at most 16", id="too many names"),
        pytest.param("Not A Name", "'Not A Name' is none", id="no name"),
        pytest.param("x" * 5000, "has 5000 characters", id="a text that is too long"),
    ],
)
def test_what_cannot_be_read_keeps_this_pod_alone_waiting(text: str, reason: str) -> None:
    gate = Gate()
    assert reason in gate.why(waiting("p", text))
    assert gate.why(a_pod("q")) == ""


@pytest.mark.parametrize(
    ("pods", "reason"),
    [
        pytest.param([waiting("a", "a")], "a after a", id="itself"),
        pytest.param([waiting("a", "b"), waiting("b", "a")], "b after a after b", id="each other"),
        pytest.param(
            [waiting("a", "b"), waiting("b", "c,x"), waiting("c", "a")], "c after a after b after c", id="in a ring"
        ),
        pytest.param(
            [waiting("p", "train", labels={JOB: "load"}), waiting("q", "load", labels={GANG: "train"})],
            "train after load after train",
            id="by the names of a Job and a gang",
        ),
    ],
)
def test_jobs_that_wait_for_each_other_are_told_so(pods: list[Pod], reason: str) -> None:
    gate = Gate()
    found = [gate.why(pod) for pod in pods][-1]
    assert found == f"jobs wait for each other and none can start: {reason}"


def test_a_chain_is_no_cycle_and_other_namespaces_do_not_count() -> None:
    gate = Gate()
    for pod in (waiting("a", "b"), waiting("b", "c"), waiting("a", "c"), waiting("c", "a", namespace="other")):
        assert gate.why(pod).startswith("waits for job")


def test_a_long_chain_takes_bounded_time_and_has_no_cycle() -> None:
    gate = Gate()
    for i in range(900):
        gate.why(waiting(f"j{i}", f"j{i + 1}"))
    assert gate.why(waiting("j0", "j1")).startswith("waits for job j1")


def test_a_namespace_that_waits_for_too_many_jobs_is_refused_alone() -> None:
    gate = Gate()
    for i in range(MAX_TRACKED):
        gate.why(waiting(f"p{i}", f"job-{i}"))
    assert f"more than {MAX_TRACKED} others" in gate.why(waiting("late", "another"))
    assert gate.why(waiting("p", "another", namespace="other")) == "waits for job another to succeed"


def test_namespaces_take_turns_and_a_name_is_looked_up_once_in_a_while() -> None:
    gate = Gate()
    for i in range(5):
        gate.why(waiting(f"p{i}", f"job-{i}", namespace="many"))
    gate.why(waiting("p", "one", namespace="few"))
    looks = [gate.dependencies.next_to_look_up() for _ in range(7)]
    assert looks[1] == ("few", "one")
    assert looks[-1] is None, "all were looked up"
    gate.clock.advance(LOOK_SECONDS)
    assert gate.dependencies.next_to_look_up() is not None


def test_a_pod_that_ends_makes_the_jobs_of_its_namespace_be_looked_up_soon() -> None:
    gate = Gate()
    gate.why(waiting("p", "a"))
    assert gate.dependencies.next_to_look_up() == ("default", "a")
    gate.dependencies.on_pod_ended(a_pod("another"))
    assert gate.dependencies.next_to_look_up() is None
    gate.clock.advance(1.0)
    assert gate.dependencies.next_to_look_up() == ("default", "a")


def test_what_nothing_waits_for_any_more_is_forgotten() -> None:
    gate = Gate()
    gate.why(waiting("p", "a"))
    gate.clock.advance(FORGET_SECONDS + 1)
    assert gate.dependencies.next_to_look_up() is None
    assert not gate.dependencies


def test_pods_that_come_and_go_while_others_wait_leave_nothing_behind() -> None:
    gate = Gate()
    gate.why(waiting("stays", "a"))
    sizes = []
    for number in range(100):
        pod = waiting(f"p{number}", "a,b", labels={JOB: f"job-{number}"})
        gate.why(pod)
        gate.dependencies.on_pod_ended(pod)
        sizes.append(kept(gate))
    assert len(set(sizes)) == 1
    assert gate.set("a", JobOutcome.RUNNING) == ["default/stays"]


def test_a_pod_whose_labels_change_all_the_time_takes_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_dependencies, "MAX_WAITING", 10)
    gate = Gate()
    for number in range(100):
        gate.why(waiting("p", "a", labels={JOB: f"job-{number}"}))
    assert kept(gate) == 12


def test_a_pod_that_ends_does_not_cost_a_look_at_all_names_that_others_wait_for() -> None:
    """A tenant may have a thousand names, and delete thousands of pods at once."""
    gate = Gate()
    for number in range(MAX_TRACKED // 16):
        gate.why(waiting(f"w{number}", ",".join(f"j{number * 16 + k}" for k in range(16))))
    namespace = gate.dependencies._namespaces["default"]
    namespace.tracked = NotIterated(namespace.tracked)
    for name in ("other", "w0"):
        gate.dependencies.on_pod_ended(waiting(name, "j0"))
    assert "default/w0" not in namespace.names_of
    assert not dict.__getitem__(namespace.tracked, "j0").pods


class NotIterated(OrderedDict[str, Any]):
    """The names that pods wait for, of which all must not be looked at."""

    def __iter__(self) -> Any:
        raise AssertionError("all names were looked at")

    values = items = __iter__


def test_a_search_for_a_cycle_among_many_names_is_short() -> None:
    gate = Gate()
    for number in range(MAX_TRACKED):
        gate.why(waiting(f"j{number}", ",".join(f"j{(number * 16 + k) % MAX_TRACKED}" for k in range(1, 17))))
    looked_at = Counted(gate.dependencies._namespaces["default"].after)
    gate.dependencies._namespaces["default"].after = looked_at
    gate.why(waiting("p", "j1,j2,j3"))
    assert looked_at.number < MAX_STEPS + MAX_NAMES


def kept(gate: Gate) -> int:
    """The entries for waiting pods."""
    namespace = gate.dependencies._namespaces["default"]
    pods = sum(len(each.pods) for each in namespace.tracked.values())
    return len(namespace.after) + len(namespace.names_of) + pods


class Counted(dict[str, tuple[str, ...]]):
    """Counts the names that are read."""

    number = 0

    def get(self, key: str, default: Any = ()) -> Any:
        found = super().get(key, default)
        self.number += len(found)
        return found
