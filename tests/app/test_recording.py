"""The flight recorder: replays are equal to the byte, files stay bounded, a cut file opens up to its last entry."""

import asyncio
import random
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from kubenexus.app.configured_parts import make_ledger, make_planner
from kubenexus.app.job_committer import PORTION
from kubenexus.app.recording.anonymiser import Anonymiser
from kubenexus.app.recording.entries import SCHEMA, Header
from kubenexus.app.recording.recorder import FlightRecorder
from kubenexus.app.recording.segments import SegmentWriter, read_entries, segment_files
from kubenexus.app.scheduler import SchedulerOptions
from kubenexus.app.scheduling_loop import LoopOptions
from kubenexus.base.errors import KubeNexusError
from kubenexus.cli import main
from kubenexus.config import load
from kubenexus.config.args import GANGS
from kubenexus.config.gang_settings import gang_settings
from kubenexus.explain.replay_recording import ReplayResult, entries_of, read_header, recording_files, replay
from kubenexus.sim.virtual.loop import run
from kubenexus.state.digest import digest
from kubenexus.state.ledger import Ledger
from kubenexus.testing.builders import a_node, a_pod
from tests.app.scheduler_fixture import PLUGINS, SchedulerFixture
from tests.bind.server import AWAY, BUSY, FORBIDDEN

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{schedulerName: default-scheduler}, {schedulerName: kubenexus-scheduler}]
"""
OTHER = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins: {score: {disabled: [{name: "*"}]}}
- schedulerName: kubenexus-scheduler
"""
HEADER = Header(SCHEMA, "test", CONFIG)
ROOT = Path(__file__).parents[2]
GANG = "pod-group.scheduling.kubenexus.io/"


def recorder(folder: Path, max_bytes: int, anonymiser: Anonymiser | None = None) -> FlightRecorder:
    return FlightRecorder(SegmentWriter(folder, max_bytes), HEADER, anonymiser)


def recorded(
    folder: Path,
    seed: int,
    max_bytes: int = 1 << 30,
    steps: int = 60,
    anonymiser: Anonymiser | None = None,
    portion: int = PORTION,
) -> tuple[str, int]:
    """Runs a scheduler through random events. Returns the digest of its ledger and the number of decisions. `portion`:
    more members than these are committed in portions, between which other things happen."""
    book, draw = recorder(folder, max_bytes, anonymiser), random.Random(seed)
    result = list[tuple[str, int]]()

    async def story() -> None:
        settings = SchedulerOptions(loop=LoopOptions(recorder=book, portion=portion))
        fixture = SchedulerFixture(CONFIG, settings=settings)
        for step in range(steps):
            happen(fixture, draw, step)
            if draw.random() < 0.6:
                await fixture.work() if portion == PORTION else fixture.scheduler.loop.run_burst()
        decisions = fixture.scheduler.loop.decisions
        book.close()
        result.append((digest(fixture.ledger), decisions))

    run(story())
    return result[0]


def happen(fixture: SchedulerFixture, draw: random.Random, step: int) -> None:
    kind = draw.choice(["node", "pod", "pod", "pod", "gang", "delete", "echo", "fault", "node gone", "later"])
    if step < 3 or kind == "node":
        name = f"n{draw.randint(0, 5)}"
        fixture.nodes(a_node(name, cpu=draw.randint(2, 8), gpu=draw.choice([0, 4]), cordoned=draw.random() < 0.1))
    elif kind == "pod":
        fixture.pods(a_waiting(f"p{step}", draw))
    elif kind == "gang":
        labels = {f"{GANG}name": f"g{step}", f"{GANG}min-available": "3"}
        fixture.pods(*(a_waiting(f"g{step}-{i}", random.Random(step), labels) for i in range(3)))
    elif kind == "delete" and fixture.server.pods:
        fixture.delete(draw.choice(sorted(fixture.server.pods)))
    elif kind == "echo":
        fixture.echo()
    elif kind == "fault":
        fixture.server.script.append(draw.choice([None, None, AWAY, BUSY, FORBIDDEN]))
    elif kind == "node gone":
        fixture.handlers.on_node_delete(f"n{draw.randint(0, 5)}")
    elif kind == "later":
        fixture.clock.advance(draw.choice([1.0, 31.0]))


def a_waiting(name: str, draw: random.Random, labels: dict[str, str] | None = None):
    return a_pod(
        name,
        cpu=draw.choice(["500m", "1", "3"]),
        gpu=draw.choice([None, None, 1]),
        priority=draw.choice([0, 0, 10]),
        labels={"app": draw.choice("xy"), **(labels or {})},
        apart=draw.choice([[], [], ["app=x per kubernetes.io/hostname"]]),
        scheduler_name=draw.choice(["default-scheduler", "kubenexus-scheduler"]),
    )


def replayed(files: list[Path], config: str = CONFIG, until: float | None = None) -> tuple[ReplayResult, Ledger]:
    configuration = load(config, PLUGINS)
    ledger = make_ledger(configuration)
    planners = {
        each.name: make_planner(
            each, PLUGINS, gang_settings(configuration.args[each.name].get(GANGS, {}), each.name), configuration
        )
        for each in configuration.profiles
    }
    return replay(entries_of(files), ledger, planners, until), ledger


@pytest.mark.parametrize("seed", range(4))
def test_every_decision_comes_out_the_same_and_so_does_the_ledger(tmp_path: Path, seed: int) -> None:
    end, decisions = recorded(tmp_path, seed)
    result, ledger = replayed(recording_files(tmp_path))
    assert result.first is None
    assert result.decisions == decisions > 10
    assert digest(ledger) == end


@pytest.mark.parametrize("seed", range(4))
def test_gangs_that_are_committed_in_portions_come_out_the_same(tmp_path: Path, seed: int) -> None:
    end, decisions = recorded(tmp_path, seed, steps=200, portion=1)
    assert b"assume" in b"".join(file.read_bytes() for file in recording_files(tmp_path))
    result, ledger = replayed(recording_files(tmp_path))
    assert result.first is None
    assert result.decisions == decisions > 10
    assert digest(ledger) == end


@pytest.mark.parametrize("seed", range(2))
def test_each_file_of_a_ring_can_be_replayed_alone(tmp_path: Path, seed: int) -> None:
    end, _ = recorded(tmp_path, seed, max_bytes=200_000, steps=120)
    files = segment_files(tmp_path)
    assert len(files) > 2
    for i, file in enumerate(files):
        alone, ledger = replayed([file])
        assert alone.first is None, file
        if file is files[-1]:
            assert digest(ledger) == end
        assert replayed(files[i:])[0].first is None


def test_the_ring_stays_within_its_size(tmp_path: Path) -> None:
    recorded(tmp_path, 1, max_bytes=120_000, steps=150)
    files = segment_files(tmp_path)
    assert files[0].name != "recording-000001.knx"
    assert sum(file.stat().st_size for file in files) <= 140_000  # the last file may be full


def test_a_file_that_is_cut_anywhere_opens_up_to_its_last_whole_entry(tmp_path: Path) -> None:
    recorded(tmp_path, 2, steps=25)
    (file,) = segment_files(tmp_path)
    raw, whole = file.read_bytes(), list(read_entries(file))
    cut = tmp_path / "cut.knx"
    known = 0
    for length in range(0, len(raw), 997):
        cut.write_bytes(raw[:length])
        found = list(read_entries(cut))
        assert found == whole[: len(found)]
        assert len(found) >= known
        known = len(found)
        assert replayed([cut])[0].first is None


def test_a_file_that_is_cut_at_any_byte_of_its_last_entries_opens_up_to_the_entry_before(tmp_path: Path) -> None:
    recorded(tmp_path, 2, steps=25)
    (file,) = segment_files(tmp_path)
    raw, whole = file.read_bytes(), list(read_entries(file))
    ends = [len(raw)]
    for payload in reversed(whole[-6:]):
        ends.append(ends[-1] - len(payload) - 8)
    cut = tmp_path / "cut.knx"
    for length in range(ends[-1], len(raw)):
        cut.write_bytes(raw[:length])
        assert list(read_entries(cut)) == whole[: len(whole) - sum(end > length for end in ends)], length


def test_a_recording_of_a_process_that_was_killed_opens_up_to_its_last_whole_entry(tmp_path: Path) -> None:
    """The process is killed with SIGKILL while it schedules and records, without any chance to flush."""
    imports = "from pathlib import Path; from tests.app.test_recording import recorded"
    command = [sys.executable, "-c", f"{imports}; recorded(Path({str(tmp_path)!r}), 5, steps=1_000_000)"]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL) as process:
        try:
            while sum(file.stat().st_size for file in segment_files(tmp_path)) < 200_000:
                with suppress(subprocess.TimeoutExpired):
                    pytest.fail(f"it ended: {process.wait(0.02)}")
        finally:
            process.kill()
    result, _ = replayed(recording_files(tmp_path))
    assert result.first is None
    assert result.decisions > 20


def test_a_wrong_byte_ends_the_file_there(tmp_path: Path) -> None:
    recorded(tmp_path, 2, steps=25)
    (file,) = segment_files(tmp_path)
    raw, whole = bytearray(file.read_bytes()), list(read_entries(file))
    raw[len(raw) // 2] ^= 0xFF
    file.write_bytes(raw)
    found = list(read_entries(file))
    assert 0 < len(found) < len(whole)
    assert found == whole[: len(found)]


def test_another_policy_shows_the_first_decision_that_differs(tmp_path: Path) -> None:
    recorded(tmp_path, 3)
    result, _ = replayed(recording_files(tmp_path), OTHER)
    assert result.first is not None
    assert result.differing >= 1
    assert result.first.recorded != result.first.replayed


def test_it_stops_at_a_time(tmp_path: Path) -> None:
    recorded(tmp_path, 0)
    full, _ = replayed(recording_files(tmp_path))
    half, _ = replayed(recording_files(tmp_path), until=(full.began_at + full.ended_at) / 2)
    assert 0 < half.decisions < full.decisions


def test_other_files_and_other_schemas_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x.knx").write_bytes(b"something else")
    with pytest.raises(KubeNexusError, match="not a recording"):
        read_header(tmp_path / "x.knx")
    FlightRecorder(SegmentWriter(tmp_path, 1 << 20), msgspec.structs.replace(HEADER, schema=99)).close()
    with pytest.raises(KubeNexusError, match="schema 99; this version reads schema 1"):
        read_header(segment_files(tmp_path)[0])
    with pytest.raises(KubeNexusError, match="no recording in this folder"):
        recording_files(tmp_path / "..")


def test_a_full_disk_ends_the_recording_and_not_the_scheduling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    book = recorder(tmp_path, 1 << 20)

    def full(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(SegmentWriter, "write", full)

    async def story() -> None:
        fixture = SchedulerFixture(CONFIG, settings=SchedulerOptions(loop=LoopOptions(recorder=book)))
        fixture.nodes(a_node("n"))
        fixture.pods(a_pod("a", cpu=1))
        await fixture.work()
        await asyncio.sleep(0)
        assert fixture.server.pods["default/a"].spec.node_name == "n"

    run(story())
    assert book.failed


# --- the command ----------------------------------------------------------------------------------------------------


def test_the_command_says_how_many_are_the_same(tmp_path: Path) -> None:
    _, decisions = recorded(tmp_path, 3, steps=30)
    result = CliRunner().invoke(main, ["replay", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert result.output.startswith(f"DECISIONS  {decisions}, of which 0 differ\nFROM       1970-01-12T")


def test_the_command_shows_the_first_that_differs_under_another_policy(tmp_path: Path) -> None:
    recorded(tmp_path, 3)
    (tmp_path / "other.yaml").write_text(OTHER)
    result = CliRunner().invoke(main, ["replay", str(tmp_path), "--policy", str(tmp_path / "other.yaml")])
    assert result.exit_code == 2, result.output
    assert "\nFIRST      decision " in result.output
    assert "\nREPLAYED   default/" in result.output


def test_the_command_refuses_a_time_that_is_none(tmp_path: Path) -> None:
    recorded(tmp_path, 3, steps=5)
    result = CliRunner().invoke(main, ["replay", str(tmp_path), "--until", "noon"])
    assert result.exit_code == 1
    assert "--until: expected a timestamp" in result.output
