"""Backfill by time: who goes ahead of the first job, and by how much it can be late."""

import json
import math
from pathlib import Path

import msgspec
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from kubenexus.api.core import Pod
from kubenexus.app.http.api.pages import job_document
from kubenexus.base.timestamps import format_time
from kubenexus.config.gang_settings import BackfillSettings
from tests.app.backfill_story import BackfillStory
from tests.app.decision_fixture import PROFILE

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "backfill" / "jobs.yaml"
PAGE = (ROOT / "docs" / "backfill.md").read_text(encoding="utf-8")
OFF = BackfillSettings(ahead=0.0)


def start(story: BackfillStory) -> float | None:
    held = story.reservations.held(PROFILE)
    return None if held is None or not held.is_timed else held.starts_at - story.begin


def a_full_node_and_a_large_pod() -> BackfillStory:
    """Two nodes of 4 CPUs; one has a CPU free for ten minutes, then a pod of 4 CPUs is expected to start there."""
    story = BackfillStory(2)
    story.submit("endless", 3, math.inf)
    story.submit("busy", 3, 600, said=600)
    story.decide()
    story.submit("large", 4, 600, said=600)
    story.decide()
    return story


def test_the_first_pod_gets_a_reservation_at_its_earliest_expected_start() -> None:
    story = a_full_node_and_a_large_pod()
    assert start(story) == 600
    story.until(700)
    assert story.start_of("large") == 600
    assert start(story) is None


@pytest.mark.parametrize(
    ("said", "goes"),
    [
        pytest.param(600.0, True, id="a job that ends in time goes ahead"),
        pytest.param(601.0, False, id="one that does not waits"),
        pytest.param(None, False, id="one without a known runtime waits"),
    ],
)
def test_a_job_goes_ahead_if_it_ends_before_the_first_job_starts(said: float | None, goes: bool) -> None:
    story = a_full_node_and_a_large_pod()
    story.submit("first", 1, 60, said=600)  # takes the CPU that is left on the other node, or this one
    story.submit("second", 1, 600, said=said)
    story.decide()
    assert ("second" in story.started) == goes
    assert ("default/second" in story.went_ahead) == goes, "as the metric has it"
    if not goes:
        assert "jobs that end before it starts go ahead" in story.why("second")
        assert "default/large" in story.why("second")
    story.until(1300)
    assert story.start_of("large") == 600
    assert "second" in story.started


def test_a_job_that_takes_nothing_the_first_job_needs_goes_ahead_however_long_it_runs() -> None:
    story = a_full_node_and_a_large_pod()
    story.submit("long", 1, 10_000)
    story.decide()
    assert "long" in story.started
    story.until(700)
    assert story.start_of("large") == 600


def test_a_job_that_runs_too_long_does_not_stand_for_shorter_ones_that_ask_for_the_same() -> None:
    story = a_full_node_and_a_large_pod()
    story.submit("long", 2, 1200, said=1200)
    story.submit("filler", 1, 1200, said=600)
    story.submit("long-too", 1, 1200, said=1200)
    story.submit("short", 1, 60, said=60)
    story.decide()
    assert {"filler", "short"} <= set(story.started)
    assert "long-too" not in story.started


def test_without_known_ends_and_with_backfill_off_nothing_is_reserved_for_a_pod() -> None:
    for story, said in ((BackfillStory(1), None), (BackfillStory(1, backfill=OFF), 600.0)):
        story.submit("busy", 3, 600, said=said)
        story.decide()
        story.submit("large", 4, 600)
        story.submit("small", 1, 600)
        story.decide()
        assert start(story) is None
        assert "small" in story.started


def test_a_job_of_higher_priority_takes_what_it_needs_and_the_first_job_gets_a_new_start() -> None:
    story = a_full_node_and_a_large_pod()
    story.submit("urgent", 1, 900, said=900, priority=10)
    story.submit("urgent-too", 1, 900, said=900, priority=10)
    story.decide()
    assert {"urgent", "urgent-too"} <= set(story.started)
    story.until(650)
    assert start(story) == 900
    story.until(1000)
    assert story.start_of("large") == 900


def test_the_live_api_has_the_expected_start_of_the_first_job_alone() -> None:
    story = a_full_node_and_a_large_pod()
    story.submit("second", 4, 600, said=600)
    story.decide()
    held = story.reservations.held(PROFILE)
    assert held is not None
    found = {each.job.key: job_document(each, {held.gang: held.starts_at}) for each in story.queue.jobs()}
    starts = {key: document.expected_start for key, document in found.items()}
    assert starts == {"default/large": format_time(story.begin + 600), "default/second": ""}


def test_a_gang_starts_when_enough_nodes_are_expected_to_be_free() -> None:
    story = BackfillStory(3)
    for i, seconds in enumerate((300, 500, 900)):
        story.submit(f"busy{i}-x", 4, seconds, said=seconds)
    story.decide()
    story.submit_gang("g", 2, 4, 100, said=100)
    story.decide()
    assert start(story) == 500
    story.until(300)
    story.submit("short", 4, 200, said=200)
    story.submit("long", 4, 500, said=500)
    story.until(1500)
    assert (story.start_of("short"), story.start_of("g-m0"), story.start_of("g-m1")) == (300, 500, 500)
    assert story.start_of("long") == 600


def test_learned_runtimes_count_as_declared_ones_do() -> None:
    story = BackfillStory(1)
    for i in range(3):
        story.submit(f"train-{i}", 3, 120 + i)
    story.until(500)
    story.submit("train-4", 3, 122)
    story.decide()
    story.submit("large", 4, 60, said=60)
    story.decide()
    began = story.start_of("train-4")
    assert began is not None
    assert start(story) == began + 122


def test_while_the_first_job_is_late_nothing_goes_ahead_on_its_nodes() -> None:
    story = BackfillStory(1)
    story.submit("liar", 3, 6000, said=600)
    story.decide()
    story.submit("large", 4, 600, said=600)
    story.until(700)
    story.submit("short", 1, 10, said=10)
    story.until(3000)
    assert "short" not in story.started
    story.until(4300)
    assert "short" in story.started, "the reservation ended an hour after its expected start"


def test_a_tenant_that_outlives_what_it_declares_goes_ahead_only_a_few_times() -> None:
    story = BackfillStory(2, cpu=8)
    story.submit("busy-a", 8, 100_000, said=100_000)
    story.submit("busy-b", 4, 100_000, said=100_000)
    story.decide()
    story.submit("large", 8, 600, said=600)
    story.decide()
    for i in range(12):
        story.submit(f"liar-{'abcdefghijkl'[i]}", 1, 50_000, said=60)
        story.until(300 * (i + 1))
    assert len([name for name in story.started if name.startswith("liar")]) <= 4


def test_the_example_goes_as_its_page_says() -> None:
    story = BackfillStory(1)
    runtimes = {"busy": 600.0, "large": 3600.0, "short": 300.0, "long": 7200.0}
    for thing in yaml.safe_load_all(EXAMPLE.read_text(encoding="utf-8")):
        pod = msgspec.json.decode(json.dumps(thing), type=Pod)
        meta = msgspec.structs.replace(pod.metadata, namespace="default", uid=pod.metadata.name)
        spec = msgspec.structs.replace(pod.spec, scheduler_name=PROFILE)
        story.submit_pod(Pod(metadata=meta, spec=spec), runtimes[pod.metadata.name])
        story.decide()
        if pod.metadata.name == "long":
            assert f"`{story.why('long').rstrip('.')}`" in PAGE
    assert set(story.started) == {"busy", "short"}
    story.until(8000)
    assert (story.start_of("large"), story.start_of("long")) == (600, 4200)


JOBS = st.lists(
    st.tuples(st.integers(0, 80).map(lambda n: n * 10), st.integers(1, 4), st.integers(1, 60).map(lambda n: n * 10)),
    min_size=3,
    max_size=10,
)


def promise(story: BackfillStory) -> float:
    held = story.reservations.held(PROFILE)
    return held.starts_at - story.begin if held is not None and held.gang == "default/large" else math.inf


def play(jobs: list[tuple[int, int, int]], factor: float) -> tuple[float, float, float]:
    """Jobs of (arrival, CPUs, expected runtime) take `factor` times as long. Returns when the large job was promised to
    start, when it did, and the longest expected runtime of the others."""
    story = BackfillStory(2, patience=600.0, backfill=BackfillSettings(late=1e6))
    promised = math.inf
    arrivals = sorted([(*job, f"j{'abcdefghijklmn'[i]}") for i, job in enumerate(jobs)] + [(300, 4, 10, "large")])
    for at, cpu, expected, name in arrivals:
        story.until(at)
        story.submit(name, cpu, expected * factor, said=expected)
        story.decide()
        promised = min(promised, promise(story))
    while "large" not in story.started:
        promised = min(promised, promise(story))
        assert story.until_next_end(), "it never started"
    begun = story.start_of("large")
    assert begun is not None
    return promised, begun, max(expected for _, _, expected in jobs)


@settings(max_examples=12, deadline=None)
@given(JOBS)
def test_no_job_that_goes_ahead_delays_the_first_job_when_estimates_are_right(jobs: list[tuple[int, int, int]]) -> None:
    promised, begun, _ = play(jobs, 1.0)
    assert promised == math.inf or begun <= promised


@settings(max_examples=8, deadline=None)
@given(JOBS)
def test_estimates_that_are_ten_times_too_short_make_it_late_by_nine_of_the_longest_at_most(
    jobs: list[tuple[int, int, int]],
) -> None:
    promised, begun, longest = play(jobs, 10.0)
    assert promised == math.inf or begun <= promised + 9 * longest
