"""Jobs: counted once, indexed, limited, cleaned up."""

from typing import Any

import pytest

from kubenexus.sim.controllers import job_indexes
from tests.sim.controllers.controller_fixture import BATCH, CORE, ControllerFixture, Json, template

INDEX = "batch.kubernetes.io/job-completion-index"


def a_job(**spec: Any) -> ControllerFixture:
    fixture = ControllerFixture()
    fixture.apply(BATCH, "jobs", "sum", {**spec, "template": template("sum", "Never")})
    fixture.busy()
    return fixture


def status(fixture: ControllerFixture) -> Json:
    return dict(fixture.get(BATCH, "jobs", "sum")["status"])


def conditions(fixture: ControllerFixture) -> dict[str, str]:
    return {each["type"]: each["reason"] for each in status(fixture).get("conditions", ()) if each["status"] == "True"}


def running(fixture: ControllerFixture) -> list[str]:
    return [pod["metadata"]["name"] for pod in fixture.pods() if pod["status"]["phase"] == "Running"]


def finish_all(fixture: ControllerFixture, phase: str = "Succeeded") -> None:
    for name in running(fixture):
        fixture.finish(name, phase)
    fixture.busy()


def test_one_pod_is_the_default() -> None:
    fixture = a_job()
    [name] = fixture.names()
    assert name.startswith("sum-")
    assert (status(fixture)["active"], status(fixture)["ready"]) == (1, 1)
    finish_all(fixture)
    assert conditions(fixture) == {"SuccessCriteriaMet": "CompletionsReached", "Complete": "CompletionsReached"}
    assert status(fixture)["succeeded"] == 1
    assert "completionTime" in status(fixture)
    assert "finalizers" not in fixture.get(CORE, "pods", name)["metadata"]


def test_no_more_run_at_once_than_may_and_no_more_than_are_lacking() -> None:
    fixture = a_job(completions=5, parallelism=3)
    assert len(running(fixture)) == 3
    finish_all(fixture)
    assert len(running(fixture)) == 2
    finish_all(fixture)
    assert (status(fixture)["succeeded"], "Complete" in conditions(fixture), len(fixture.names())) == (5, True, 5)


def test_a_result_counts_though_its_pod_is_deleted() -> None:
    fixture = a_job(completions=3, parallelism=1)
    for _ in range(3):
        [name] = running(fixture)
        fixture.finish(name)
        fixture.busy()
        fixture.end(name)
    assert (status(fixture)["succeeded"], "Complete" in conditions(fixture), fixture.names()) == (3, True, [])


def test_a_queue_of_work_ends_when_one_has_found_it_empty() -> None:
    fixture = a_job(parallelism=3)
    first, *others = running(fixture)
    fixture.finish(first)
    fixture.busy()
    assert (sorted(running(fixture)), conditions(fixture)) == (sorted(others), {})
    finish_all(fixture)
    assert "Complete" in conditions(fixture)


def test_an_indexed_pod_is_told_its_number_in_five_ways() -> None:
    fixture = a_job(completions=3, parallelism=3, completionMode="Indexed")
    pods = sorted(fixture.pods(), key=lambda pod: pod["metadata"]["annotations"][INDEX])
    assert [pod["metadata"]["labels"][INDEX] for pod in pods] == ["0", "1", "2"]
    assert [pod["metadata"]["name"].rsplit("-", 1)[0] for pod in pods] == ["sum-0", "sum-1", "sum-2"]
    assert [pod["spec"]["hostname"] for pod in pods] == ["sum-0", "sum-1", "sum-2"]
    [variable] = pods[2]["spec"]["containers"][0]["env"]
    assert variable["name"] == "JOB_COMPLETION_INDEX"
    assert variable["valueFrom"]["fieldRef"]["fieldPath"] == f"metadata.labels['{INDEX}']"


def test_each_number_has_to_succeed() -> None:
    fixture = a_job(completions=4, parallelism=4, completionMode="Indexed")
    names = {pod["metadata"]["annotations"][INDEX]: pod["metadata"]["name"] for pod in fixture.pods()}
    for number in ("0", "1", "3"):
        fixture.finish(names[number])
    fixture.finish(names["2"], "Failed")
    fixture.busy()
    assert (status(fixture)["completedIndexes"], status(fixture)["failed"]) == ("0,1,3", 1)
    fixture.later(10)  # after a failure the next one comes later
    fixture.busy()
    [again] = running(fixture)
    assert again.startswith("sum-2-")
    finish_all(fixture)
    assert (status(fixture)["completedIndexes"], "Complete" in conditions(fixture)) == ("0-3", True)


@pytest.mark.parametrize(
    ("numbers", "text"), [((), ""), ((1,), "1"), ((1, 2), "1,2"), ((0, 1, 2, 5, 7, 8, 9), "0-2,5,7-9")]
)
def test_numbers_are_written_as_upstream_writes_them(numbers: tuple[int, ...], text: str) -> None:
    assert job_indexes.text(numbers) == text
    assert job_indexes.parse(text) == set(numbers)


def test_too_many_failures_end_it() -> None:
    fixture = a_job(backoffLimit=2, completions=1)
    waits = []
    while "Failed" not in conditions(fixture):
        finish_all(fixture, "Failed")
        if "Failed" not in conditions(fixture):
            waits.append((fixture.controllers.next_due() or 0) - fixture.clock.now())
            fixture.later(waits[-1])
            fixture.busy()
    assert waits == [10, 20]
    assert conditions(fixture) == {"FailureTarget": "BackoffLimitExceeded", "Failed": "BackoffLimitExceeded"}
    assert status(fixture)["failed"] == 3
    fixture.later(1000)
    assert len(fixture.names()) == 3


def test_a_deadline_ends_it_and_its_pods() -> None:
    fixture = a_job(activeDeadlineSeconds=60, parallelism=2, completions=2)
    fixture.later(60)
    fixture.busy()
    assert conditions(fixture)["Failed"] == "DeadlineExceeded"
    assert running(fixture) == []


def test_what_is_suspended_has_no_pods() -> None:
    fixture = a_job(completions=2, parallelism=2)
    fixture.patch(BATCH, "jobs", "sum", {"spec": {"suspend": True}})
    fixture.busy()
    assert (fixture.names(), conditions(fixture)) == ([], {"Suspended": "JobSuspended"})
    fixture.patch(BATCH, "jobs", "sum", {"spec": {"suspend": False}})
    fixture.busy()
    assert len(running(fixture)) == 2


def test_a_finished_job_goes_when_its_time_has_come() -> None:
    fixture = a_job(ttlSecondsAfterFinished=100)
    finish_all(fixture)
    fixture.later(99)
    assert len(fixture.items(BATCH, "jobs")) == 1
    fixture.later(1)
    fixture.busy()
    assert (fixture.items(BATCH, "jobs"), fixture.names()) == ([], [])


@pytest.mark.parametrize("policy", ["Background", "Foreground"])
def test_a_deleted_job_leaves_no_pod_behind(policy: str) -> None:
    fixture = a_job(completions=3, parallelism=3)
    fixture.delete(BATCH, "jobs", "sum", f"?propagationPolicy={policy}")
    fixture.busy()
    assert (fixture.items(BATCH, "jobs"), fixture.names()) == ([], [])
