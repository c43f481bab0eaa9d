"""Jobs: counted once, indexed, limited, cleaned up."""

from typing import Any

import pytest

from kubenexus.sim.controllers import job_indexes
from tests.sim.controllers.towns import BATCH, CORE, Json, Town, template

INDEX = "batch.kubernetes.io/job-completion-index"


def a_job(**spec: Any) -> Town:
    town = Town()
    town.apply(BATCH, "jobs", "sum", {**spec, "template": template("sum", "Never")})
    town.busy()
    return town


def status(town: Town) -> Json:
    return dict(town.get(BATCH, "jobs", "sum")["status"])


def conditions(town: Town) -> dict[str, str]:
    return {each["type"]: each["reason"] for each in status(town).get("conditions", ()) if each["status"] == "True"}


def running(town: Town) -> list[str]:
    return [pod["metadata"]["name"] for pod in town.pods() if pod["status"]["phase"] == "Running"]


def finish_all(town: Town, phase: str = "Succeeded") -> None:
    for name in running(town):
        town.finish(name, phase)
    town.busy()


def test_one_pod_is_the_default() -> None:
    town = a_job()
    [name] = town.names()
    assert name.startswith("sum-")
    assert (status(town)["active"], status(town)["ready"]) == (1, 1)
    finish_all(town)
    assert conditions(town) == {"SuccessCriteriaMet": "CompletionsReached", "Complete": "CompletionsReached"}
    assert status(town)["succeeded"] == 1
    assert "completionTime" in status(town)
    assert "finalizers" not in town.get(CORE, "pods", name)["metadata"]


def test_no_more_run_at_once_than_may_and_no_more_than_are_lacking() -> None:
    town = a_job(completions=5, parallelism=3)
    assert len(running(town)) == 3
    finish_all(town)
    assert len(running(town)) == 2
    finish_all(town)
    assert (status(town)["succeeded"], "Complete" in conditions(town), len(town.names())) == (5, True, 5)


def test_a_result_counts_though_its_pod_is_deleted() -> None:
    town = a_job(completions=3, parallelism=1)
    for _ in range(3):
        [name] = running(town)
        town.finish(name)
        town.busy()
        town.end(name)
    assert (status(town)["succeeded"], "Complete" in conditions(town), town.names()) == (3, True, [])


def test_a_queue_of_work_ends_when_one_has_found_it_empty() -> None:
    town = a_job(parallelism=3)
    first, *others = running(town)
    town.finish(first)
    town.busy()
    assert (sorted(running(town)), conditions(town)) == (sorted(others), {})
    finish_all(town)
    assert "Complete" in conditions(town)


def test_an_indexed_pod_is_told_its_number_in_five_ways() -> None:
    town = a_job(completions=3, parallelism=3, completionMode="Indexed")
    pods = sorted(town.pods(), key=lambda pod: pod["metadata"]["annotations"][INDEX])
    assert [pod["metadata"]["labels"][INDEX] for pod in pods] == ["0", "1", "2"]
    assert [pod["metadata"]["name"].rsplit("-", 1)[0] for pod in pods] == ["sum-0", "sum-1", "sum-2"]
    assert [pod["spec"]["hostname"] for pod in pods] == ["sum-0", "sum-1", "sum-2"]
    [variable] = pods[2]["spec"]["containers"][0]["env"]
    assert variable["name"] == "JOB_COMPLETION_INDEX"
    assert variable["valueFrom"]["fieldRef"]["fieldPath"] == f"metadata.labels['{INDEX}']"


def test_each_number_has_to_succeed() -> None:
    town = a_job(completions=4, parallelism=4, completionMode="Indexed")
    names = {pod["metadata"]["annotations"][INDEX]: pod["metadata"]["name"] for pod in town.pods()}
    for number in ("0", "1", "3"):
        town.finish(names[number])
    town.finish(names["2"], "Failed")
    town.busy()
    assert (status(town)["completedIndexes"], status(town)["failed"]) == ("0,1,3", 1)
    town.later(10)  # after a failure the next one comes later
    town.busy()
    [again] = running(town)
    assert again.startswith("sum-2-")
    finish_all(town)
    assert (status(town)["completedIndexes"], "Complete" in conditions(town)) == ("0-3", True)


@pytest.mark.parametrize(
    ("numbers", "text"), [((), ""), ((1,), "1"), ((1, 2), "1,2"), ((0, 1, 2, 5, 7, 8, 9), "0-2,5,7-9")]
)
def test_numbers_are_written_as_upstream_writes_them(numbers: tuple[int, ...], text: str) -> None:
    assert job_indexes.text(numbers) == text
    assert job_indexes.parse(text) == set(numbers)


def test_too_many_failures_end_it() -> None:
    town = a_job(backoffLimit=2, completions=1)
    waits = []
    while "Failed" not in conditions(town):
        finish_all(town, "Failed")
        if "Failed" not in conditions(town):
            waits.append((town.controllers.next_due() or 0) - town.clock.now())
            town.later(waits[-1])
            town.busy()
    assert waits == [10, 20]
    assert conditions(town) == {"FailureTarget": "BackoffLimitExceeded", "Failed": "BackoffLimitExceeded"}
    assert status(town)["failed"] == 3
    town.later(1000)
    assert len(town.names()) == 3


def test_a_deadline_ends_it_and_its_pods() -> None:
    town = a_job(activeDeadlineSeconds=60, parallelism=2, completions=2)
    town.later(60)
    town.busy()
    assert conditions(town)["Failed"] == "DeadlineExceeded"
    assert running(town) == []


def test_what_is_suspended_has_no_pods() -> None:
    town = a_job(completions=2, parallelism=2)
    town.patch(BATCH, "jobs", "sum", {"spec": {"suspend": True}})
    town.busy()
    assert (town.names(), conditions(town)) == ([], {"Suspended": "JobSuspended"})
    town.patch(BATCH, "jobs", "sum", {"spec": {"suspend": False}})
    town.busy()
    assert len(running(town)) == 2


def test_a_finished_job_goes_when_its_time_has_come() -> None:
    town = a_job(ttlSecondsAfterFinished=100)
    finish_all(town)
    town.later(99)
    assert len(town.items(BATCH, "jobs")) == 1
    town.later(1)
    town.busy()
    assert (town.items(BATCH, "jobs"), town.names()) == ([], [])


@pytest.mark.parametrize("policy", ["Background", "Foreground"])
def test_a_deleted_job_leaves_no_pod_behind(policy: str) -> None:
    town = a_job(completions=3, parallelism=3)
    town.delete(BATCH, "jobs", "sum", f"?propagationPolicy={policy}")
    town.busy()
    assert (town.items(BATCH, "jobs"), town.names()) == ([], [])
