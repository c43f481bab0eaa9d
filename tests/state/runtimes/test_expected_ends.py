"""The column of expected ends: what pods bring when they come, and what it says of pods that outlive it."""

import math

import msgspec

from kubenexus.api.core import Pod, PodCondition
from kubenexus.state.ledger import Ledger
from kubenexus.testing.builders import a_node, a_pod

BEGIN = 1_767_225_600.0  # 2026-01-01
KEY = "scheduling.kubenexus.io/max-runtime"


def bound(name: str, runtime: str = "", *, policy: str = "Never") -> Pod:
    pod = a_pod(name, cpu=1, node="n", annotations={KEY: runtime} if runtime else {})
    return msgspec.structs.replace(
        pod,
        spec=msgspec.structs.replace(pod.spec, restart_policy=policy),
        status=msgspec.structs.replace(pod.status, phase="Running", start_time="2026-01-01T00:00:00Z"),
    )


def finished(pod: Pod, minute: int) -> Pod:
    ready = PodCondition(type="Ready", status="False", last_transition_time=f"2026-01-01T00:{minute:02}:00Z")
    return msgspec.structs.replace(
        pod, status=msgspec.structs.replace(pod.status, phase="Succeeded", conditions=[ready])
    )


def a_ledger() -> Ledger:
    ledger = Ledger()
    ledger.upsert_node(a_node("n", cpu=100))
    return ledger


def end_of(ledger: Ledger, name: str, now: float) -> float:
    slot = ledger.pods[f"default/{name}"].slot
    return float(ledger.nodes.pods.expected_ends.ends(now)[slot])


def test_a_pod_ends_its_declared_runtime_after_its_start_and_others_never() -> None:
    ledger = a_ledger()
    ledger.upsert_pod(bound("short", "10m"))
    ledger.upsert_pod(bound("plain"))
    ledger.upsert_pod(bound("service", policy="Always"))
    assert end_of(ledger, "short", BEGIN + 60) == BEGIN + 600
    assert end_of(ledger, "plain", BEGIN) == end_of(ledger, "service", BEGIN) == math.inf
    assert ledger.nodes.pods.expected_ends.known == 1
    ledger.remove_pod("default/short")
    assert ledger.nodes.pods.expected_ends.known == 0


def test_a_pod_that_outlives_its_runtime_is_expected_to_take_twice_as_long_then_four_times() -> None:
    ledger = a_ledger()
    ledger.upsert_pod(bound("short", "10m"))
    ends = [end_of(ledger, "short", BEGIN + seconds) - BEGIN for seconds in (599, 600, 1199, 1200, 2400)]
    assert ends == [600, 1200, 1200, 2400, 4800]
    at = ledger.nodes.pods.expected_ends.ends(BEGIN + 2000, BEGIN + 500)
    assert at[ledger.pods["default/short"].slot] == BEGIN + 600


def test_runs_are_learned_and_pods_that_run_already_are_estimated_when_it_is_asked_for() -> None:
    ledger = a_ledger()
    ledger.upsert_pod(bound("train-9"))
    for i in range(3):
        pod = bound(f"train-{i}")
        ledger.upsert_pod(pod)
        ledger.pod_ended(finished(pod, 10 + i))
        ledger.remove_pod(pod.key)
        ledger.pod_ended(finished(pod, 59))  # it no longer counts, so it is not learned twice
    ends = ledger.nodes.pods.expected_ends
    assert ends.known == 0
    ends.look_again(BEGIN + 60)
    assert end_of(ledger, "train-9", BEGIN + 60) == BEGIN + 12 * 60
    assert ends.known == 1


def test_a_pod_that_still_runs_after_its_declared_time_makes_later_ones_count_for_longer() -> None:
    ledger = a_ledger()
    for i in range(3):
        ledger.upsert_pod(bound(f"liar-{i}", "1m"))
    ends = ledger.nodes.pods.expected_ends
    for _ in range(5):
        ends.look_again(BEGIN + 600)  # each counts once
    estimate = ends.estimate(bound("liar-9", "1m"))
    assert estimate is not None
    assert estimate.high == 600
    assert estimate.runs == 3


def test_a_pod_that_runs_on_after_it_was_found_late_is_known_for_how_long_it_runs() -> None:
    """Looked at every few seconds, it is first seen late by seconds; deleted, it has no end that could be learned."""
    ledger = a_ledger()
    ledger.upsert_pod(bound("liar", "1m"))
    ends = ledger.nodes.pods.expected_ends
    for seconds in range(0, 36_000, 5):
        ends.look_again(BEGIN + seconds)
    ledger.remove_pod("default/liar")
    for name in ("liar", "another"):
        estimate = ends.estimate(bound(name, "1m"))
        assert estimate is not None
        assert 18_000 <= estimate.high <= 36_000
    assert estimate is not None
    assert estimate.runs < 12, "once for each doubling"
