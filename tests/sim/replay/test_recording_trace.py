"""A recording as a trace: its jobs arrive and end as they did, on the cluster as it was."""

import json
from pathlib import Path

from click.testing import CliRunner

from kubenexus.app.scheduler import SchedulerOptions
from kubenexus.app.scheduling_loop import LoopOptions
from kubenexus.cli import main
from kubenexus.sim.replay.traces.recording import read_recording
from kubenexus.sim.virtual.loop import run
from kubenexus.testing.builders import a_node, a_pod
from tests.app.scheduler_fixture import SchedulerFixture
from tests.app.test_recording import CONFIG, recorder


def a_recording(folder: Path) -> None:
    book = recorder(folder, 1 << 30)

    async def story() -> None:
        fixture = SchedulerFixture(CONFIG, settings=SchedulerOptions(loop=LoopOptions(recorder=book)))
        fixture.nodes(a_node("n1", cpu=2), a_node("n2", cpu=2))
        fixture.pods(a_pod("before", node="n1", cpu=1))
        fixture.pods(a_pod("first", cpu=2))
        await fixture.work()
        fixture.echo()
        fixture.clock.advance(30.0)
        fixture.pods(a_pod("second", cpu=2))  # waits for the end of the first
        await fixture.work()
        fixture.clock.advance(30.0)
        fixture.delete("default/first")
        await fixture.work()
        fixture.echo()
        book.close()

    run(story())


def test_jobs_arrive_when_they_were_first_decided_and_end_with_their_pods(tmp_path: Path) -> None:
    a_recording(tmp_path)
    found = read_recording(tmp_path)
    first, second = found.jobs()
    assert (first.at, first.duration, first.tenant) == (0.0, 30.0, "default")
    assert (second.at, second.duration, second.shape.cpu) == (30.0, None, 2000)
    ledger = found.ledger()
    assert sorted(ledger.nodes.row_of) == ["n1", "n2"]
    assert list(ledger.pods) == ["default/before"]


def test_the_command_plays_it_under_a_policy(tmp_path: Path) -> None:
    a_recording(tmp_path)
    result = CliRunner().invoke(main, ["simulate", "recording", str(tmp_path), "--policy", "shipped", "-o", "json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.output)["placed"] == 2


def test_a_folder_without_a_recording_is_refused(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["simulate", "recording", str(tmp_path)])
    assert result.exit_code == 1
    assert "no recording in this folder" in result.output
