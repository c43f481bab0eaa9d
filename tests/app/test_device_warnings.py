"""Values about devices that cannot be read: an event on the pod, a line in the log for a node, each once."""

import logging
from typing import cast

import msgspec
import pytest

from kubenexus.api.core import Pod
from kubenexus.app.report.device_warnings import MAX_PODS, DeviceWarnings
from kubenexus.observe.recorder import EventRecorder
from kubenexus.testing.builders import a_node, a_pod
from tests.api.gangs.builders import LEAST, NAME
from tests.app.scheduler_fixture import SchedulerFixture, scheduler_test

VRAM = "scheduling.kubenexus.io/vram-request"
LINK = "gpu.kubenexus.io/prefer-nvlink"


def gpu_pod(name: str = "p", gpu: int | None = 1, **annotations: str) -> Pod:
    keys = {"vram": VRAM, "link": LINK, "gang": NAME, "least": LEAST}
    return a_pod(name, gpu=gpu, annotations={keys[key]: text for key, text in annotations.items()})


def warned(fixture: SchedulerFixture) -> list[str]:
    return [text for text in fixture.told() if text.startswith("DevicesUnclear")]


@pytest.mark.parametrize(
    ("pod", "parts"),
    [
        pytest.param(gpu_pod(vram="lots"), [VRAM, "'lots'"], id="a quantity that is none"),
        pytest.param(gpu_pod(link="maybe"), [LINK, "'maybe'"], id="a word that is not allowed"),
        pytest.param(gpu_pod(gpu=None, vram="8Gi"), ["requests none"], id="needs of GPUs without a GPU"),
    ],
)
def test_a_pod_gets_a_warning_that_names_key_and_value(pod: Pod, parts: list[str]) -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.pods(pod)
        await fixture.work()
        (text,) = warned(fixture)
        assert all(part in text for part in parts)

    scheduler_test(life)


def test_once_for_each_pod_and_text() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        pod = gpu_pod(vram="lots")
        for i in range(3):
            labelled = msgspec.structs.replace(pod.metadata, labels={"round": str(i)})
            fixture.pods(msgspec.structs.replace(pod, metadata=labelled))
            await fixture.work()
        assert len(warned(fixture)) == 1
        fixture.pods(gpu_pod(vram="lots", link="maybe"))
        await fixture.work()
        assert sorted(LINK in text for text in warned(fixture)) == [False, True]
        fixture.pods(gpu_pod("q", vram="lots"))
        await fixture.work()
        assert len(warned(fixture)) == 3

    scheduler_test(life)


def test_members_of_a_gang_and_pods_without_needs() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.pods(*(gpu_pod(f"g{i}", vram="lots", gang="g", least="2") for i in range(2)), gpu_pod("plain"))
        await fixture.work()
        assert len(warned(fixture)) == 2

    scheduler_test(life)


def test_a_node_is_logged_once_and_again_when_its_warning_changes(caplog: pytest.LogCaptureFixture) -> None:
    async def life(fixture: SchedulerFixture) -> None:
        def lines() -> int:
            return sum("states about its devices" in record.getMessage() for record in caplog.records)

        for memory, cpu, expected in (("lots", 1, 1), ("lots", 2, 1), ("more", 2, 2), ("80Gi", 2, 2)):
            fixture.nodes(a_node("n", cpu=cpu, gpu=cpu, labels={"gpu.kubenexus.io/vram": memory}))
            await fixture.work()
            assert lines() == expected

    with caplog.at_level(logging.WARNING):
        scheduler_test(life)


def test_a_gang_of_thousands_keeps_the_loop_no_longer_than_one_of_dozens() -> None:
    recorder = Recorder()
    warnings = DeviceWarnings(cast("EventRecorder", recorder))
    pods = [on_uid(gpu_pod(f"p{i}", vram=f"lots-{i}"), i) for i in range(3 * MAX_PODS)]
    for call in range(1, 5):
        warnings.report(pods)
        assert recorder.count == min(call, 3) * MAX_PODS


def test_long_values_are_not_kept() -> None:
    warnings = DeviceWarnings(cast("EventRecorder", Recorder()))
    for i in range(100):
        warnings.report([on_uid(gpu_pod(f"p{i}", vram=f"{i}{'x' * 100_000}"), i)])
    assert len(repr((warnings._known, warnings._warned))) < 100_000


class Recorder:
    count = 0

    def record(self, what: object, controller: str) -> None:
        self.count += 1


def on_uid(pod: Pod, number: int) -> Pod:
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, uid=f"uid-{number}"))
