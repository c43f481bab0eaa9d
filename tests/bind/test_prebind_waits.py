"""Pods that wait in a PreBind plugin hold back no others, and are bounded for each namespace."""

import asyncio
import contextlib
import random

import pytest

from kubenexus.bind.dispatcher import Dispatcher
from kubenexus.bind.job_binding import BindHooks, PodBinding
from kubenexus.bind.prebind_waits import MAX_PER_NAMESPACE, MAX_WAITING, PreBindWaits
from kubenexus.testing.builders import a_pod
from tests.async_helpers import yield_to_loop
from tests.bind.send_checks import send_checks
from tests.bind.server import Guard, PodServer
from tests.bind.test_dispatcher import Landed, Slow, committed


def test_however_many_wait_for_volumes_others_are_decided_and_only_their_like_are_not() -> None:
    class Never(Slow):
        async def pre_bind(self, pod_binding: PodBinding) -> str:
            await asyncio.Event().wait()
            return ""

    async def life() -> None:
        dispatcher = Dispatcher(
            PodServer(), Guard(), Landed(), random.Random(1), hooks=BindHooks((Never(),)), checks=send_checks()
        )
        for i in range(5000):
            dispatcher.submit(committed(a_pod(f"volume-{i}", namespace="evil")))
        await yield_to_loop()
        assert dispatcher.open_count == 5000
        assert dispatcher.backlog.admits("evil")
        said = f'running PreBind plugin "Slow": {MAX_PER_NAMESPACE} pods of this namespace wait for volumes already'
        assert dispatcher.prebind_runner.reason_to_postpone([a_pod("volume-x", namespace="evil")]) == said
        assert (
            dispatcher.prebind_runner.reason_to_postpone(
                [a_pod("x", namespace="evil"), a_pod("volume-x", namespace="evil")]
            )
            == said
        )
        assert dispatcher.prebind_runner.reason_to_postpone([a_pod("x", namespace="evil")]) == ""
        assert dispatcher.prebind_runner.reason_to_postpone([a_pod("volume-x", namespace="good")]) == ""
        await dispatcher.close(1.0)
        assert dispatcher.prebind_runner.reason_to_postpone([a_pod("volume-x", namespace="evil")]) == "", (
            "they wait no longer"
        )

    asyncio.run(life())


@pytest.mark.parametrize(
    ("waiting", "namespace", "reached"),
    [
        pytest.param({"a": MAX_PER_NAMESPACE - 1}, "a", 0, id="one more may"),
        pytest.param({"a": MAX_PER_NAMESPACE}, "a", MAX_PER_NAMESPACE, id="as many as may"),
        pytest.param({"a": MAX_PER_NAMESPACE}, "b", 0, id="another namespace"),
        pytest.param({f"{i}": 512 for i in range(32)}, "0", 512, id="in all as many as may: an equal share"),
        pytest.param({f"{i}": 512 for i in range(32)}, "new", 0, id="a namespace of which none waits yet"),
        pytest.param({f"{i}": 2 for i in range(MAX_WAITING)}, "0", 1, id="at least one of each namespace"),
    ],
)
def test_how_many_pods_may_wait_before_their_bind(waiting: dict[str, int], namespace: str, reached: int) -> None:
    waits = PreBindWaits()
    with contextlib.ExitStack() as stack:
        for each, pods in waiting.items():
            stack.enter_context(waits.waiting("VolumeBinding", each, pods))
        assert waits.reached("VolumeBinding", namespace) == reached
    assert (waits.reached("VolumeBinding", namespace), waits.jobs, len(waits._pods)) == (0, 0, 0)
