"""Programs that end with the process that started them, however that process ends.

All of them belong to one process group. Its leader is a guard: a shell that waits for the end of a pipe whose other end
only this process holds. When the pipe ends, because it was closed or this process was killed, the guard kills the
group. So only programs that were started here are stopped, and none is left behind.
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
    """One program of a group, which can be restarted after it was stopped. Its output goes to its log."""

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
        """The process id of the running program, for measurements."""
        assert self._process is not None, f"{self.name} is not running"
        return self._process.pid

    def start(self) -> None:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, process_group=self._group
            )

    def until(self, ready: Callable[[], bool], seconds: float = 60.0) -> None:
        """Waits until `ready` returns true. Raises DidNotStart."""
        assert self._process is not None, f"{self.name} was not started"
        deadline = CLOCK.now() + seconds
        while not ready():
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = self._process.wait(POLL_SECONDS)
                raise DidNotStart(f"{self.name} ended with {code}\n{self.tail()}")
            if CLOCK.now() > deadline:
                raise DidNotStart(f"{self.name} was not ready within {seconds:g} s\n{self.tail()}")

    def stop(self, seconds: float = 10.0) -> None:
        """Terminates the program, and kills it if it does not end within `seconds`."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()

    @property
    def code(self) -> int | None:
        """The exit code; None while the program runs."""
        return None if self._process is None else self._process.poll()

    def ended(self, seconds: float) -> int:
        """Waits until the program has ended by itself; returns its exit code. Raises StillRuns."""
        assert self._process is not None, f"{self.name} was not started"
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise StillRuns(f"{self.name} has not ended within {seconds:g} s\n{self.tail()}") from None

    def kill(self) -> None:
        """Kills the program with SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def said(self) -> str:
        """Returns all its output since the first start."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def tail(self, lines: int = 20) -> str:
        """Returns the end of its log."""
        return "\n".join([f"{self.log}:", *self.said().splitlines()[-lines:]])


class ProcessGroup:
    """The programs of one control plane, or others that must end with this process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.programs: list[ManagedProcess] = []
        self._guard = subprocess.Popen(["/bin/sh", "-c", GUARD], stdin=subprocess.PIPE, process_group=0)

    def start(self, command: Sequence[str], name: str = "") -> ManagedProcess:
        """Starts a program; its log is `<name>.log` in the folder."""
        log = self.folder / f"{name or Path(command[0]).name}.log"
        program = ManagedProcess(command, log, self._guard.pid)
        program.start()
        self.programs.append(program)
        return program

    def close(self) -> None:
        """Stops all programs, the last first. Safe to call twice."""
        for program in reversed(self.programs):
            program.stop()
        self.programs.clear()
        if self._guard.stdin is not None:
            self._guard.stdin.close()
        self._guard.wait()
