"""A look at a pod may be overtaken by the watch: the younger news counts, whichever comes first."""

import msgspec
import pytest

from kubenexus.api.core import Pod
from kubenexus.app.landing import Unconfirmed
from kubenexus.client import kinds
from kubenexus.client.calls import ApiError
from kubenexus.testing.builders import a_node, a_pod
from tests.app.town import Town, in_town


def at(pod: Pod, version: str, uid: str = "") -> Pod:
    meta = msgspec.structs.replace(pod.metadata, resource_version=version, uid=uid or pod.metadata.uid)
    return msgspec.structs.replace(pod, metadata=meta)


def watch_is_at(town: Town, version: str) -> None:
    (watch,) = [each for each in town.scheduler.reflectors if each.resource is kinds.PODS]
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
    async def life(town: Town) -> None:
        town.nodes(a_node("n"))
        watch_is_at(town, watch)
        town.scheduler.landing.learn(at(a_pod("web", node="n"), "10"))
        assert town.where() == known

    in_town(life)


def test_a_pod_that_is_gone_does_not_take_its_successor_along() -> None:
    async def life(town: Town) -> None:
        town.nodes(a_node("n"))
        town.feed.pod_seen(at(a_pod("web", node="n"), "30", uid="second"))
        town.server.looks.append(ApiError(404, "NotFound"))
        await town.scheduler.inquest._confirm(Unconfirmed("default", "web", "first"))
        assert town.where() == {"web": "n"}
        town.server.looks.append(ApiError(404, "NotFound"))
        await town.scheduler.inquest._confirm(Unconfirmed("default", "web", "second"))
        assert town.where() == {}

    in_town(life)
