"""What a job says of itself, whether it is a gang or a single pod."""

import pytest

from kubenexus.api.core import Pod
from kubenexus.framework.job import Job
from kubenexus.testing.builders import a_pod


def a_worker(name: str, priority: int = 0) -> Pod:
    return a_pod(name, namespace="ml", priority=priority, scheduler_name="batch")


@pytest.mark.parametrize(
    ("job", "gang", "shown"),
    [
        pytest.param(Job.of(a_worker("a", 7)), False, "ml/a", id="a pod"),
        pytest.param(Job("ml/volcano/llama", (a_worker("a"), a_worker("b", 7)), 2), True, "ml/llama", id="a gang"),
        pytest.param(Job("ml/volcano/llama", (a_worker("b", 7),)), True, "ml/llama", id="the last member of a gang"),
    ],
)
def test_what_a_job_says_of_itself(job: Job, gang: bool, shown: str) -> None:
    assert (job.is_gang, job.display_name) == (gang, shown)
    assert (job.profile, job.namespace, job.priority) == ("batch", "ml", 7)
