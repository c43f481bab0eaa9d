"""`.ci/run` tests a clone of what is committed, in a folder with nothing beside it, and leaves nothing behind."""

import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
STEPS = ["lint", "demo", "test", "oracle", "simulate", "docs-site", "controlplane", "e2e"]
# A make that writes down what it was asked for and what it saw: `$SEEN` and, for one that never ends, `$READY`.
SEES = 'echo "$1 $PWD $(cat said) $(ls -A ..)" >> "$SEEN"\n'
FAILS = '[ "$1" != demo ] || exit 7\n'
STAYS = 'sleep 1000 & echo > "$READY"; wait\n'


class Checkout:
    """A repository with `.ci/run` and one more file, and a machine with the make that a test wants."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.path, self.temporary = folder, folder / "checkout", folder / "tmp"
        self.seen, self.ready = folder / "seen", folder / "ready"
        for made in (self.path / ".ci", self.temporary, folder / "bin"):
            made.mkdir(parents=True)
        shutil.copy(ROOT / ".ci" / "run", self.path / ".ci" / "run")
        (self.path / "said").write_text("committed")
        self.git("init", "--quiet")
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message=first")

    def git(self, *arguments: str) -> str:
        who = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
        done = subprocess.run(["git", *who, *arguments], cwd=self.path, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def start(self, make: str) -> "subprocess.Popen[str]":
        program = self.folder / "bin" / "make"
        program.write_text("#!/bin/sh\n" + make)
        program.chmod(0o755)
        env = {
            "PATH": f"{program.parent}:{os.environ['PATH']}",
            "HOME": str(self.folder),
            "TMPDIR": str(self.temporary),
            "SEEN": str(self.seen),
            "READY": str(self.ready),
        }
        command = ["bash", str(self.path / ".ci" / "run")]
        return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def steps(self) -> list[list[str]]:
        return [line.split() for line in self.seen.read_text().splitlines()]


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def test_the_steps_are_the_commands_of_the_readme_and_what_fails_fastest_is_first() -> None:
    assert re.findall(r"^run make ([\w-]+)", SCRIPT, re.MULTILINE) == STEPS
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [step for step in STEPS if f"make {step}" not in readme] == []


def test_it_needs_no_more_than_90_minutes() -> None:
    assert re.findall(r"^limit=\$\(\((.*)\)\)", SCRIPT, re.MULTILINE) == ["90 * 60"]


@pytest.mark.parametrize("detached", [False, True], ids=["on a branch", "on a commit"])
def test_what_is_committed_is_tested_alone_and_nothing_is_left(checkout: Checkout, detached: bool) -> None:
    if detached:
        checkout.git("checkout", "--quiet", "--detach")
        checkout.git("commit", "--quiet", "--allow-empty", "--message=second")
    (checkout.path / "said").write_text("not committed")
    (checkout.path / "beside").write_text("not committed")
    running = checkout.start(SEES)
    printed, problems = running.communicate()
    assert (running.returncode, problems) == (0, "")
    seen = checkout.steps()
    assert [step for step, *_ in seen] == STEPS
    assert {tuple(said) for _, _, *said in seen} == {("committed", "clone")}
    assert {Path(folder).is_relative_to(checkout.temporary) for _, folder, *_ in seen} == {True}
    assert list(checkout.temporary.iterdir()) == []
    lines = printed.splitlines()
    assert checkout.git("rev-parse", "HEAD") in lines[0]
    assert [line.split()[2] for line in lines[1:-1]] == STEPS
    assert checkout.git("status", "--short").split() == ["M", "said", "??", "beside"]


def test_it_ends_with_the_first_step_that_fails(checkout: Checkout) -> None:
    running = checkout.start(SEES + FAILS)
    running.communicate()
    assert running.returncode == 7
    assert [step for step, *_ in checkout.steps()] == ["lint", "demo"]
    assert list(checkout.temporary.iterdir()) == []


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_what_is_interrupted_ends_with_all_that_it_has_started(checkout: Checkout, number: int, code: int) -> None:
    os.mkfifo(checkout.ready)
    running = checkout.start(STAYS)
    checkout.ready.read_text()  # until the step is under way
    running.send_signal(number)
    running.communicate(timeout=120)  # to the end of what is printed: the sleep of 1000 s holds it open while it lives
    assert running.returncode == code
    assert list(checkout.temporary.iterdir()) == []
