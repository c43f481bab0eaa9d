"""Jobs that come after others in a whole scheduler: looked up at the API server, released, and told why they wait."""

import asyncio
from typing import Any
from urllib.parse import parse_qsl

import msgspec
import pytest

from kubenexus.api.core import Pod
from kubenexus.app.dependencies.lookups import PORTION, DependencyLookups
from kubenexus.client.calls import ApiError, Call, Unreachable
from kubenexus.queue.job_dependencies import JobName, JobOutcome
from kubenexus.testing.builders import a_node, a_pod
from tests.app.scheduler_fixture import SchedulerFixture, scheduler_test

AFTER = {"scheduling.kubenexus.io/after": "prepare"}


class Server:
    """Answers by the end of the path; all else is not found. Lists have the pods of the gang."""

    def __init__(self, answers: dict[str, Any], gang: list[str] | None = None) -> None:
        self.answers, self.gang, self.asked = answers, gang or [], list[str]()

    async def send(self, call: Call, *, timeout: float = 10.0) -> bytes:
        self.asked.append(call.path)
        if "?" in call.path:
            return msgspec.json.encode({"items": [{"status": {"phase": each}} for each in self._selected(call.path)]})
        for end, answer in self.answers.items():
            if call.path.endswith(end):
                if isinstance(answer, Exception):
                    raise answer
                return msgspec.json.encode({"status": answer})
        raise ApiError(404, "NotFound", call.path)

    def _selected(self, path: str) -> list[str]:
        asked = dict(parse_qsl(path.partition("?")[2]))
        selector = asked.get("fieldSelector", "")
        unlike, phase = "!=" in selector, selector.rpartition("=")[2]
        found = [each for each in self.gang if not selector or (each == phase) != unlike]
        return found[: int(asked["limit"])]


def condition(kind: str, status: str = "True") -> dict[str, Any]:
    return {"conditions": [{"type": kind, "status": status}]}


@pytest.mark.parametrize(
    ("server", "outcome"),
    [
        pytest.param(
            Server({"jobs/prepare": condition("Complete")}), JobOutcome.SUCCEEDED, id="a Job that is complete"
        ),
        pytest.param(Server({"jobs/prepare": condition("Failed")}), JobOutcome.FAILED, id="a Job that failed"),
        pytest.param(
            Server({"jobs/prepare": condition("Complete", "False")}), JobOutcome.RUNNING, id="a Job that runs"
        ),
        pytest.param(Server({"pods/prepare": {"phase": "Succeeded"}}), JobOutcome.SUCCEEDED, id="a pod that succeeded"),
        pytest.param(Server({"pods/prepare": {"phase": "Running"}}), JobOutcome.RUNNING, id="a pod that runs"),
        pytest.param(
            Server({"jobs/prepare": ApiError(403, "Forbidden", ""), "pods/prepare": {"phase": "Failed"}}),
            JobOutcome.FAILED,
            id="Jobs may not be read, and the pod failed",
        ),
        pytest.param(
            Server({}, ["Succeeded", "Succeeded"]), JobOutcome.SUCCEEDED, id="all members of a gang succeeded"
        ),
        pytest.param(Server({}, ["Succeeded", "Running"]), JobOutcome.RUNNING, id="a member runs"),
        pytest.param(Server({}, ["Succeeded", "Failed", "Running"]), JobOutcome.FAILED, id="a member failed"),
        pytest.param(Server({}), JobOutcome.MISSING, id="no such job"),
    ],
)
def test_what_became_of_a_job(server: Server, outcome: JobOutcome) -> None:
    async def life(fixture: SchedulerFixture) -> None:
        assert await lookups(fixture, server)._outcome(JobName("default", "prepare")) is outcome

    scheduler_test(life)


def lookups(fixture: SchedulerFixture, server: Server) -> DependencyLookups:
    scheduler = fixture.scheduler
    return DependencyLookups(
        server, scheduler.dependencies, fixture.queue, scheduler.waiting, scheduler.pod_reporter, scheduler.wakeup
    )


def told(fixture: SchedulerFixture, name: str) -> list[str]:
    return [each.partition(": ")[2] for each in fixture.told() if f" {name}: " in each]


def test_a_pod_waits_until_the_job_before_it_has_succeeded() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        server = Server({})
        looks = lookups(fixture, server)
        fixture.nodes(a_node("n", cpu="10"))
        fixture.pods(a_pod("train", cpu="1", annotations=AFTER), a_pod("other", cpu="1"))
        await fixture.work()
        assert set(fixture.bound()) == {"other"}
        await looks.step()
        assert told(fixture, "train")[-1] == "there is no job prepare in this namespace"
        server.answers["jobs/prepare"] = condition("Complete", "False")
        fixture.clock.advance(15.0)
        await looks.step()
        await fixture.work()
        verdict = fixture.queue.gate_verdict("default/train")
        assert verdict is not None
        assert verdict.reasons == ("waits for job prepare to succeed",)
        server.answers["jobs/prepare"] = condition("Complete")
        fixture.delete("default/other")  # a pod of the namespace ends
        fixture.clock.advance(1.0)
        await looks.step()
        await fixture.work()
        assert set(fixture.bound()) == {"train"}

    scheduler_test(life)


def test_a_gang_waits_as_a_whole() -> None:
    gang = {"pod-group.scheduling.kubenexus.io/name": "g", "pod-group.scheduling.kubenexus.io/min-available": "2"}

    def members() -> list[Pod]:
        return [a_pod(f"g{i}", cpu="1", labels=gang, annotations=AFTER if i else {}) for i in range(2)]

    async def life(fixture: SchedulerFixture) -> None:
        server = Server({})
        fixture.nodes(a_node("n", cpu="10"))
        fixture.pods(*members())
        await fixture.work()
        assert not fixture.bound()
        server.answers["pods/prepare"] = {"phase": "Succeeded"}
        await lookups(fixture, server).step()
        await fixture.work()
        assert set(fixture.bound()) == {"g0", "g1"}

    scheduler_test(life)


def test_a_look_that_fails_is_repeated() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        server = Server({"jobs/prepare": Unreachable("away")})
        looks = lookups(fixture, server)
        fixture.nodes(a_node("n", cpu="10"))
        fixture.pods(a_pod("train", cpu="1", annotations=AFTER))
        await looks.step()
        server.answers["jobs/prepare"] = condition("Complete")
        await looks.step()
        assert not fixture.bound(), "not at once"
        fixture.clock.advance(15.0)
        await looks.step()
        await fixture.work()
        assert set(fixture.bound()) == {"train"}

    scheduler_test(life)


def test_without_such_pods_the_server_is_not_asked() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        server = Server({})
        fixture.pods(a_pod("p"))
        await lookups(fixture, server).step()
        assert server.asked == []

    scheduler_test(life)


def test_many_pods_that_wait_for_one_job_do_not_hold_up_the_loop() -> None:
    """Two hundred gates: other tasks have turns meanwhile."""

    async def life(fixture: SchedulerFixture) -> None:
        server, turns = Server({}), 0
        looks = lookups(fixture, server)
        fixture.pods(*(a_pod(f"p{i}", cpu="1", annotations=AFTER) for i in range(4 * PORTION)))
        step = asyncio.ensure_future(looks.step())
        while not step.done():
            await asyncio.sleep(0)
            turns += 1
        assert turns >= 4

    scheduler_test(life)
