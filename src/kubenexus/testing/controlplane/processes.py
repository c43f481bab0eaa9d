"""Programs that live no longer than the process that started them, however that one ends.

All of them belong to one process group. Its leader is a guard, a shell that waits for the end of a pipe of which only
we hold the other end: when it ends, because we closed it or because we were killed, the guard kills the group. So
nothing but what was started here is ever stopped, and nothing is left behind.
"""

import contextlib
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from kubenexus.base.clock import WallClock
from kubenexus.base.errors import KubeNexusError

GUARD = "trap '' HUP INT TERM; read -r _; kill -9 0"
POLL_SECONDS = 0.05
CLOCK = WallClock()


class DidNotStart(KubeNexusError):
    """A program ended, or was not ready in time; the message has the end of its log."""


class StillRuns(KubeNexusError):
    """A program that should have ended has not; the message has the end of its log."""


class ManagedProcess:
    """One program of a family, which can be started again after it was stopped. What it prints goes to its log."""

    def __init__(self, command: Sequence[str], log: Path, group: int) -> None:
        self.name = Path(command[0]).name
        self.log = log
        self._command = list(command)
        self._group = group
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """Of the running program, to measure what it uses."""
        assert self._process is not None, f"{self.name} is not running"
        return self._process.pid

    def start(self) -> None:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, process_group=self._group
            )

    def until(self, ready: Callable[[], bool], seconds: float = 60.0) -> None:
        """Waits until it is ready. Raises DidNotStart."""
        assert self._process is not None, f"{self.name} was not started"
        deadline = CLOCK.now() + seconds
        while not ready():
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = self._process.wait(POLL_SECONDS)
                raise DidNotStart(f"{self.name} ended with {code}\n{self.tail()}")
            if CLOCK.now() > deadline:
                raise DidNotStart(f"{self.name} was not ready within {seconds:g} s\n{self.tail()}")

    def stop(self, seconds: float = 10.0) -> None:
        """Asks it to end, and kills it if it does not."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()

    @property
    def code(self) -> int | None:
        """What it ended with; None while it runs."""
        return None if self._process is None else self._process.poll()

    def ended(self, seconds: float) -> int:
        """Waits until it has ended by itself; returns its code."""
        assert self._process is not None, f"{self.name} was not started"
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise StillRuns(f"{self.name} has not ended within {seconds:g} s\n{self.tail()}") from None

    def kill(self) -> None:
        """At once, as a power cut would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def said(self) -> str:
        """All that it has printed, since it was started for the first time."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def tail(self, lines: int = 20) -> str:
        """The end of its log."""
        return "\n".join([f"{self.log}:", *self.said().splitlines()[-lines:]])


class ProcessGroup:
    """The programs of one control plane, or whatever else has to end with us."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.programs: list[ManagedProcess] = []
        self._guard = subprocess.Popen(["/bin/sh", "-c", GUARD], stdin=subprocess.PIPE, process_group=0)

    def start(self, command: Sequence[str], name: str = "") -> ManagedProcess:
        """A new program; its log is `<name>.log` in our folder."""
        log = self.folder / f"{name or Path(command[0]).name}.log"
        program = ManagedProcess(command, log, self._guard.pid)
        program.start()
        self.programs.append(program)
        return program

    def close(self) -> None:
        """Stops them all, the last first. Safe to call twice."""
        for program in reversed(self.programs):
            program.stop()
        self.programs.clear()
        if self._guard.stdin is not None:
            self._guard.stdin.close()
        self._guard.wait()
