"""Programs that a test starts end with it, whatever happens to it, and others are left alone."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubenexus.testing.controlplane.processes import CLOCK, DidNotStart, ProcessGroup

OWNER = """
import sys
from pathlib import Path
from kubenexus.testing.controlplane.processes import ProcessGroup

group = ProcessGroup(Path(sys.argv[1]))
group.start(["sh", "-c", 'exec sleep 120 > "$0"', sys.argv[1] + "/fifo"])
sys.stdin.read()
"""


@pytest.fixture
def group(tmp_path: Path) -> Iterator[ProcessGroup]:
    with contextlib.closing(ProcessGroup(tmp_path)) as made:
        yield made


def test_all_are_stopped_at_the_end_and_only_they(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as stranger:
        group = ProcessGroup(tmp_path)
        programs = [group.start(["sleep", "60"]), group.start(["sh", "-c", "trap '' TERM; sleep 60"], "stubborn")]
        group.programs[1].kill()
        group.close()
        group.close()
        assert [program.running for program in programs] == [False, False]
        assert stranger.poll() is None
        stranger.kill()


def test_they_end_with_their_owner_even_if_it_is_killed(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    started = CLOCK.now()
    with (
        subprocess.Popen([sys.executable, "-c", OWNER, str(tmp_path)], stdin=subprocess.PIPE) as owner,
        (tmp_path / "fifo").open("rb") as fifo,  # opens when the program has opened the other end
    ):
        owner.kill()
        assert fifo.read() == b""  # ends when the program does
    assert CLOCK.now() - started < 60


def test_a_program_that_ends_early_says_why(group: ProcessGroup) -> None:
    program = group.start(["sh", "-c", "echo no such flag >&2; exit 3"], "broken")
    with pytest.raises(DidNotStart, match=r"sh ended with 3\n.*broken.log:\nno such flag"):
        program.until(lambda: False, seconds=10)


def test_a_program_that_is_not_ready_in_time_says_so(group: ProcessGroup) -> None:
    program = group.start(["sleep", "60"])
    with pytest.raises(DidNotStart, match=r"sleep was not ready within 0.1 s"):
        program.until(lambda: False, seconds=0.1)


def test_a_killed_program_starts_again(group: ProcessGroup) -> None:
    program = group.start(["sleep", "60"])
    first = program.pid
    program.kill()
    assert not program.running
    program.start()
    assert program.running
    assert program.pid != first
