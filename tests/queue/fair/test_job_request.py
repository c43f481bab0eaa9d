"""What a job asks for: the sum over its pods, worked out once for a decision."""

import pytest

from kubenexus.api.core import Pod
from kubenexus.framework.job import Job
from kubenexus.queue.fair import job_request as module
from kubenexus.queue.fair.job_request import job_request
from kubenexus.state.footprint import Footprint, footprint_of
from kubenexus.testing.builders import a_pod


def test_the_request_of_a_gang_is_the_sum_and_is_worked_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[str] = []

    def counted(pod: Pod) -> Footprint:
        looks.append(pod.key)
        return footprint_of(pod)

    monkeypatch.setattr(module, "footprint_of", counted)
    one = Job("default/g", tuple([a_pod(f"p{i}", cpu=1 + i) for i in range(3)]), 3)
    other = Job("default/h", (a_pod("q", cpu=5),), 1)
    assert [dict(job_request(one).amounts)["cpu"] for _ in range(3)] == [6000] * 3
    assert len(looks) == 3
    assert dict(job_request(other).amounts)["cpu"] == 5000
    assert job_request(one).pods == 3
