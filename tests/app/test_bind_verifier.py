"""A look at a pod may be overtaken by the watch: the younger news counts, whichever comes first."""

import asyncio

import msgspec
import pytest

from kubenexus.api.core import Pod
from kubenexus.app.binding.recent_binds import UnconfirmedBind
from kubenexus.client import kinds
from kubenexus.client.calls import ApiError, Call
from kubenexus.testing.builders import a_node, a_pod
from tests.app.scheduler_fixture import SchedulerFixture, scheduler_test
from tests.sim.virtual.virtual_time import elapse


def at(pod: Pod, version: str, uid: str = "") -> Pod:
    meta = msgspec.structs.replace(pod.metadata, resource_version=version, uid=uid or pod.metadata.uid)
    return msgspec.structs.replace(pod, metadata=meta)


def watch_is_at(fixture: SchedulerFixture, version: str) -> None:
    (watch,) = [each for each in fixture.scheduler.watches.reflectors if each.resource is kinds.PODS]
    watch.version = version


@pytest.mark.parametrize(
    ("watch", "known"),
    [
        pytest.param("20", {}, id="the watch is further, and has told that it is gone"),
        pytest.param("10", {}, id="the watch has told of this very version"),
        pytest.param("9", {"web": "n"}, id="the look is ahead"),
        pytest.param("", {"web": "n"}, id="a list will tell"),
    ],
)
def test_a_look_that_was_overtaken_makes_no_phantom(watch: str, known: dict[str, str]) -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n"))
        watch_is_at(fixture, watch)
        fixture.handlers.on_pod_looked_up(at(a_pod("web", node="n"), "10"))
        assert fixture.where() == known

    scheduler_test(life)


def test_a_pod_that_is_gone_does_not_take_its_successor_along() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n"))
        fixture.handlers.on_pod_update(at(a_pod("web", node="n"), "30", uid="second"))
        fixture.server.looks.append(ApiError(404, "NotFound"))
        await fixture.scheduler.bind_verifier._confirm(UnconfirmedBind("default", "web", "first"))
        assert fixture.where() == {"web": "n"}
        fixture.server.looks.append(ApiError(404, "NotFound"))
        await fixture.scheduler.bind_verifier._confirm(UnconfirmedBind("default", "web", "second"))
        assert fixture.where() == {}

    scheduler_test(life)


def test_pods_of_a_namespace_whose_calls_hang_do_not_keep_others_from_being_checked() -> None:
    """Each of its GETs takes five seconds; one after the other they took half a minute."""

    async def life(fixture: SchedulerFixture) -> None:
        asked, binds = list[tuple[str, float]](), fixture.scheduler.recent_binds
        loop = asyncio.get_running_loop()

        async def send(call: Call, *, timeout: float = 10.0) -> bytes:
            asked.append((call.namespace, loop.time()))
            if call.namespace == "evil":
                await elapse(5.0)
            raise ApiError(404, "NotFound")

        fixture.scheduler.bind_verifier._api.send = send  # type: ignore[method-assign]
        for number in range(100):
            pod = a_pod(f"p{number}", namespace="evil", node="n")
            binds.add(pod.metadata.uid)
            binds.pod_vanished(pod)
        victim = a_pod("web", namespace="shop", node="n")
        binds.add(victim.metadata.uid)
        binds.pod_vanished(victim)
        began = loop.time()
        await fixture.scheduler.bind_verifier.step()
        assert [at - began <= 1.0 for namespace, at in asked if namespace == "shop"] == [True]
        assert len([namespace for namespace, _ in asked if namespace == "evil"]) < 20
        for task in list(fixture.scheduler.bind_verifier._open):
            task.cancel()
        await elapse(0.1)
        assert not fixture.scheduler.bind_verifier._open

    scheduler_test(life)
