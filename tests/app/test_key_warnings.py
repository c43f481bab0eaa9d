"""Values of keys that cannot be read: an event on the pod, a line in the log for a node or namespace, each once."""

import logging
from collections.abc import Iterator
from typing import Any, cast

import msgspec
import pytest

from kubenexus.api.core import Pod
from kubenexus.api.keys import KeyEntry, KeyKind, read_key
from kubenexus.api.meta import ObjectMeta
from kubenexus.api.workloads import Namespace
from kubenexus.app.report.key_warnings import MAX_PODS, MAX_WARNINGS, WISHES, KeyWarnings
from kubenexus.observe.events import EventRecord
from kubenexus.observe.recorder import EventRecorder
from kubenexus.testing.builders import a_node, a_pod
from tests.api.gangs.builders import LEAST, NAME
from tests.app.scheduler_fixture import SchedulerFixture, scheduler_test

VRAM = "scheduling.kubenexus.io/vram-request"
LINK = "gpu.kubenexus.io/prefer-nvlink"
TYPE = "workload.kubenexus.io/type"


def gpu_pod(name: str = "p", gpu: int | None = 1, **annotations: str) -> Pod:
    keys = {"vram": VRAM, "link": LINK, "gang": NAME, "least": LEAST}
    return a_pod(name, gpu=gpu, annotations={keys[key]: text for key, text in annotations.items()})


def warned(fixture: SchedulerFixture) -> list[str]:
    return [text for text in fixture.told() if text.startswith(("DevicesUnclear", "PlacementUnclear"))]


def every_spelling() -> Iterator[Any]:
    for entry in WISHES:
        for spelling in entry.spellings:
            for kind in (KeyKind.LABEL, KeyKind.ANNOTATION):
                if kind in spelling.kind:
                    yield pytest.param(entry, spelling.key, kind, id=f"{kind} {spelling.key} of {entry.key}")


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


@pytest.mark.parametrize(("entry", "key", "kind"), list(every_spelling()))
def test_every_wish_is_warned_of_in_every_spelling(entry: KeyEntry[Any], key: str, kind: KeyKind) -> None:
    """The text is the registry's own, and a value that it can read has none."""
    recorder = Recorder()
    warnings = KeyWarnings(cast("EventRecorder", recorder))
    fields = [{key: text} for text in ("perhaps", entry.values.example)]
    pods = [a_pod(labels=each) if kind is KeyKind.LABEL else a_pod(annotations=each) for each in fields]
    warnings.report(on_uid(pod, number) for number, pod in enumerate(pods))
    (record,) = recorder.records
    (problem,) = read_key(entry, pods[0].metadata.labels, pods[0].metadata.annotations).warnings
    assert (record.type, record.reason, record.note) == ("Warning", "PlacementUnclear", problem)
    assert all(part in problem for part in (key, "'perhaps'"))


def test_a_pod_that_wishes_for_what_cannot_be_read_is_placed_all_the_same() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n"))
        fixture.pods(a_pod("p", labels={TYPE: "trainning"}, annotations={"tenant.kubenexus.io/tier": "platinum"}))
        await fixture.work()
        assert list(fixture.where().values()) == ["n"]
        assert [TYPE in text and "'trainning'" in text for text in warned(fixture)] == [True, False]
        assert "'platinum'" in warned(fixture)[1]

    scheduler_test(life)


def test_spellings_that_disagree_are_told_once_though_two_entries_share_them() -> None:
    recorder = Recorder()
    keys = {"workload.kubenexus.io/preemptible": "false", "scheduling.kubenexus.io/backfill": "true"}
    KeyWarnings(cast("EventRecorder", recorder)).report([a_pod("p", annotations=keys)])
    assert [record.reason for record in recorder.records] == ["PlacementUnclear"]


def test_a_label_and_an_annotation_with_the_same_text_are_told_apart() -> None:
    recorder = Recorder()
    warnings = KeyWarnings(cast("EventRecorder", recorder))
    both = a_pod("a", labels={TYPE: "?"}), a_pod("b", annotations={TYPE: "?"})
    warnings.report(on_uid(pod, number) for number, pod in enumerate(both))
    assert [record.note.split()[0] for record in recorder.records] == ["label", "annotation"]


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
            return sum("Cannot read all labels" in record.getMessage() for record in caplog.records)

        for memory, cpu, expected in (("lots", 1, 1), ("lots", 2, 1), ("more", 2, 2), ("80Gi", 2, 2)):
            fixture.nodes(a_node("n", cpu=cpu, gpu=cpu, labels={"gpu.kubenexus.io/vram": memory}))
            await fixture.work()
            assert lines() == expected

    with caplog.at_level(logging.WARNING):
        scheduler_test(life)


def test_a_namespace_whose_tier_cannot_be_read_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    async def life(fixture: SchedulerFixture) -> None:
        for version in ("1", "2"):
            labels = {"tenant.kubenexus.io/tier": "platinum", "version": version}
            fixture.things(Namespace(metadata=ObjectMeta(name="ml", labels=labels)))
            await fixture.work()

    with caplog.at_level(logging.WARNING):
        scheduler_test(life)
    (keys,) = [each.__dict__["keys"] for each in caplog.records if "Cannot read a tier" in each.getMessage()]
    assert keys["object"] == "Namespace ml"
    assert "tenant.kubenexus.io/tier" in keys["why"]
    assert "'platinum'" in keys["why"]


@pytest.mark.parametrize(
    ("key", "bad", "good"),
    [
        pytest.param("hardware.kubenexus.io/tier", "platinum", "gold", id="hardware tier"),
        pytest.param("hardware.kubenexus.io/cost-hour", "cheap", "2.50", id="cost"),
        pytest.param("tenant.kubenexus.io/reserved-tier", "platinum", "gold", id="reserved tier"),
        pytest.param("network.kubenexus.io/fabric-type", "infinband", "infiniband", id="fabric"),
    ],
)
def test_a_node_without_devices_is_logged_by_key_and_value(
    caplog: pytest.LogCaptureFixture, key: str, bad: str, good: str
) -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("bad", labels={key: bad}), a_node("good", labels={key: good}))
        await fixture.work()
        fixture.nodes(a_node("bad", cpu=2, labels={key: bad}))
        await fixture.work()

    with caplog.at_level(logging.WARNING):
        scheduler_test(life)
    (keys,) = [each.__dict__["keys"] for each in caplog.records if "Cannot read all labels" in each.getMessage()]
    assert keys["node"] == "bad"
    assert all(part in keys["why"] for part in (key, repr(bad)))


def test_a_gang_of_thousands_keeps_the_loop_no_longer_than_one_of_dozens() -> None:
    recorder = Recorder()
    warnings = KeyWarnings(cast("EventRecorder", recorder))
    pods = [on_uid(gpu_pod(f"p{i}", vram=f"lots-{i}"), i) for i in range(3 * MAX_PODS)]
    for call in range(1, 5):
        warnings.report(pods)
        assert len(recorder.records) == min(call, 3) * MAX_PODS


def test_a_pod_with_many_values_that_cannot_be_read_gets_a_few_events_and_one_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    recorder = Recorder()
    keys = {spelling.key: "perhaps" for entry in WISHES for spelling in entry.spellings}
    with caplog.at_level(logging.WARNING):
        KeyWarnings(cast("EventRecorder", recorder)).report([a_pod("p", labels=keys, annotations=keys)])
    assert len(recorder.records) == MAX_WARNINGS + 1
    assert recorder.records[-1].note.endswith("more values of this pod are not clear")
    assert len(caplog.records) == 1


def test_long_values_are_not_kept() -> None:
    warnings = KeyWarnings(cast("EventRecorder", Recorder()))
    for i in range(100):
        warnings.report([on_uid(gpu_pod(f"p{i}", vram=f"{i}{'x' * 100_000}"), i)])
    assert len(repr((warnings._known, warnings._warned))) < 100_000


class Recorder:
    def __init__(self) -> None:
        self.records: list[EventRecord] = []

    def record(self, what: EventRecord, controller: str) -> None:
        self.records.append(what)


def on_uid(pod: Pod, number: int) -> Pod:
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, uid=f"uid-{number}"))
