"""What an API server answers, and what tenants put into their objects, ends no task beside the loop, and no process."""

import asyncio
import logging

import pytest

from kubenexus.app.contained_task import PAUSE, contained
from kubenexus.app.provisioning.provisioning_requests import DELAY, READ_SECONDS
from kubenexus.client.calls import Call
from kubenexus.testing.builders import a_node
from tests.app.scheduler_fixture import SchedulerFixture, scheduler_test
from tests.app.test_admission_checks import KueueServer, a_raw_workload, controller
from tests.app.test_gangs import gang
from tests.app.test_provisioning_requests import CONFIG, REQUESTS, TEMPLATES, Autoscaler, after

_DEEP = b'"managedFields":[{"fieldsV1":' + b'{"f:a":' * 5000 + b"{}" + b"}" * 5000 + b"}]"


def deepened(answer: bytes) -> bytes:
    """The answer with fields in all objects that are nested thousands of levels deep, as clients may write them."""
    return answer.replace(b'"metadata":{', b'"metadata":{' + _DEEP + b",")


class DeepAutoscaler(Autoscaler):
    async def send(self, call: Call, *, timeout: float = 10.0) -> bytes:
        return deepened(await super().send(call, timeout=timeout))


class DeepKueue(KueueServer):
    async def send(self, call: Call, *, timeout: float = 10.0) -> bytes:
        return deepened(await super().send(call, timeout=timeout))


def test_a_gang_whose_pods_are_nested_deeply_is_asked_for_like_any_other() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=4))
        fixture.pods(*gang("llama", 4, cpu=2))
        await fixture.work()
        found, server = fixture.scheduler.provisioning, DeepAutoscaler(fixture)
        found._api = server
        await after(fixture, found, DELAY)
        assert server.names(REQUESTS)
        made = server.objects[TEMPLATES, server.names(TEMPLATES)[0]]
        assert made["template"]["spec"] == {"containers": [{"name": "main"}], "nodeSelector": {"a": "b"}}
        await after(fixture, found, READ_SECONDS)
        assert server.names(REQUESTS)

    scheduler_test(life, CONFIG)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"{}", id="an empty object"),
        pytest.param(b"[]", id="a list"),
        pytest.param(b'{"metadata":{"uid":"u"},"spec":[]}', id="a spec that is none"),
        pytest.param(b'{"a', id="half of an object"),
        pytest.param(b"\xff\xfe", id="no text"),
    ],
)
def test_nonsense_instead_of_a_pod_costs_one_request(answer: bytes) -> None:
    class Nonsense(Autoscaler):
        def _pod(self, name: str) -> bytes:
            return answer if name.startswith("llama") else super()._pod(name)

    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=4))
        fixture.pods(*gang("llama", 4, cpu=2), *gang("other", 4, cpu=2))
        await fixture.work()
        found, server = fixture.scheduler.provisioning, Nonsense(fixture)
        found._api = server
        await after(fixture, found, DELAY)
        assert server.names(REQUESTS) == ["other-nodes"]

    scheduler_test(life, CONFIG)


def test_a_workload_that_is_nested_deeply_is_answered_like_any_other() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=4))
        server = DeepKueue(a_raw_workload("w", 2))
        await controller(fixture, server).step()
        assert server.state("w") == "Ready"
        kept = server.workloads["w"]["status"]["admissionChecks"][0]
        assert kept == {"name": "other", "state": "Ready", "message": "kept", "podSetUpdates": [{"name": "main"}]}

    scheduler_test(life)


def test_a_task_that_fails_begins_again_and_ends_when_it_returns(caplog: pytest.LogCaptureFixture) -> None:
    began, slept = list[int](), list[float]()

    async def run() -> None:
        began.append(1)
        if len(began) < 3:
            raise RecursionError("too deep")

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    with caplog.at_level(logging.ERROR):
        asyncio.run(contained("a task", run, sleep))
    assert (len(began), slept) == (3, [PAUSE, PAUSE])
    assert "A task failed" in caplog.text


def test_a_task_that_is_cancelled_ends() -> None:
    async def life() -> None:
        task = asyncio.ensure_future(contained("a task", asyncio.Event().wait))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled()

    asyncio.run(life())
