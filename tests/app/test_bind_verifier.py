"""A look at a pod may be overtaken by the watch: the younger news counts, whichever comes first."""

import msgspec
import pytest

from kubenexus.api.core import Pod
from kubenexus.app.binding.recent_binds import UnconfirmedBind
from kubenexus.client import kinds
from kubenexus.client.calls import ApiError
from kubenexus.testing.builders import a_node, a_pod
from tests.app.scheduler_fixture import SchedulerFixture, scheduler_test


def at(pod: Pod, version: str, uid: str = "") -> Pod:
    meta = msgspec.structs.replace(pod.metadata, resource_version=version, uid=uid or pod.metadata.uid)
    return msgspec.structs.replace(pod, metadata=meta)


def watch_is_at(fixture: SchedulerFixture, version: str) -> None:
    (watch,) = [each for each in fixture.scheduler.reflectors if each.resource is kinds.PODS]
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
