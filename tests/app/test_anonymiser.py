"""A recording with hashes in place of names: no name is in it, and it can be replayed."""

from pathlib import Path
from typing import Any

import pytest

from kubenexus.api.core import Pod
from kubenexus.api.keys import gang
from kubenexus.app.recording.anonymiser import Anonymiser
from kubenexus.app.recording.segments import segment_files
from kubenexus.app.scheduler import SchedulerOptions
from kubenexus.app.scheduling_loop import LoopOptions
from kubenexus.explain.replay_recording import recording_files
from kubenexus.sim.virtual.loop import run
from kubenexus.testing.builders import a_node, a_pod
from tests.app.scheduler_fixture import SchedulerFixture
from tests.app.test_recording import CONFIG, recorded, recorder, replayed

RACK = "topology.kubernetes.io/rack"
PROFILES = ("default-scheduler", "kubenexus-scheduler")
SECRETS = ["acme", "zurich", "falcon", "moonshot", "rocket-fuel", "payroll", "tower", "ledger-key"]


def anonymiser() -> Anonymiser:
    return Anonymiser(b"secret", PROFILES)


def test_no_name_that_people_chose_is_in_the_recording(tmp_path: Path) -> None:
    book = recorder(tmp_path, 1 << 30, anonymiser())

    async def story() -> None:
        fixture = SchedulerFixture(CONFIG, settings=SchedulerOptions(loop=LoopOptions(recorder=book)))
        fixture.nodes(a_node("zurich-1", cpu=4, labels={"acme.example/site": "tower", RACK: "falcon-rack"}))
        pods: list[Pod] = []
        for i in range(3):
            labels = {"app": "rocket-fuel", gang.NAME.key: "moonshot", gang.MIN_AVAILABLE.key: "3"}
            pods.append(a_pod(f"falcon-{i}", namespace="acme", cpu=2, labels=labels, scheduler_name=PROFILES[1]))
        low = a_pod("payroll", namespace="acme", cpu=1, scheduler_name=PROFILES[1])
        low.metadata.annotations["team"] = "ledger-key"
        fixture.pods(low, *pods)
        await fixture.work()
        book.close()

    run(story())
    (file,) = segment_files(tmp_path)
    raw = file.read_bytes()
    assert [name for name in SECRETS if name.encode() in raw] == []
    result, _ = replayed(recording_files(tmp_path))
    assert (result.decisions, result.differing) == (2, 0)


@pytest.mark.parametrize("seed", range(3))
def test_it_is_replayed_and_only_what_names_decide_may_differ(tmp_path: Path, seed: int) -> None:
    _, decisions = recorded(tmp_path, seed, max_bytes=200_000, anonymiser=anonymiser())
    result, _ = replayed(recording_files(tmp_path))
    assert decisions >= result.decisions > decisions // 4
    assert result.differing <= result.decisions // 2


@pytest.mark.parametrize(
    ("text", "stays"),
    [
        ("cpu", True),
        ("nvidia.com/gpu", True),
        ("3 Insufficient cpu", True),
        ("ml/train-0", False),
        ("0/5 nodes are available: train-0 waits", False),
    ],
)
def test_words_of_kubernetes_stay_and_names_go_wherever_they_are(text: str, stays: bool) -> None:
    known = anonymiser()
    known.replaced("", a_pod("train-0", namespace="ml", cpu=1))
    known.replaced("", a_pod("cpu", namespace="default", cpu=1))
    about, content = known.replaced(text, {"any": [text]})
    assert (about == text) is stays
    assert content == {"any": [about]}
    assert "train-0" not in about


def test_equal_names_have_equal_hashes_and_other_secrets_give_others() -> None:
    def name_of(each: Anonymiser) -> Any:
        return each.replaced("", a_pod("train-0", namespace="ml"))[1]["metadata"]["name"]

    assert name_of(anonymiser()) == name_of(anonymiser())
    assert name_of(anonymiser()) != name_of(Anonymiser(b"other"))
