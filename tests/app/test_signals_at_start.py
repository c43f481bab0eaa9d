"""A signal while the modules are imported: one line, and the exit code that docs/running.md names."""

import signal
import subprocess
import sys

import pytest

# Runs the command, and sends the signal to the process itself when it is about to import a module.
SIGNALLED = """
import os, runpy, sys
number, module, entry, sys.argv[1:] = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4:]

class Signalling:
    def find_spec(self, name, path=None, target=None):
        if name == module:
            os.kill(os.getpid(), number)

sys.meta_path.insert(0, Signalling())
if entry == "-m":
    runpy.run_module("kubenexus", run_name="__main__", alter_sys=True)
else:
    from importlib.metadata import entry_points
    entry_points(group="console_scripts", name="kubenexus")["kubenexus"].load()()
"""


def signalled(number: int, module: str, *command: str, entry: str = "-m") -> tuple[int, str]:
    program = [sys.executable, "-c", SIGNALLED, str(int(number)), module, entry, *command]
    ended = subprocess.run(program, capture_output=True, text=True, timeout=120, check=False)
    return ended.returncode, ended.stderr


@pytest.mark.parametrize(
    ("module", "entry"),
    [
        pytest.param("click", "-m", id="the first import"),
        pytest.param("kubenexus.app.process", "-m", id="the heavy imports"),
        pytest.param("uvloop", "-m", id="the last before the event loop"),
        pytest.param("click", "console script", id="the first import, as a console script"),
    ],
)
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)], ids=["TERM", "INT"])
def test_a_signal_while_modules_are_imported_is_one_line(number: int, code: int, module: str, entry: str) -> None:
    command = ["run", "--master", "http://127.0.0.1:1", "--leader-elect=false", "--secure-port=0"]
    ended, text = signalled(number, module, *command, entry=entry)
    lines = [line for line in text.splitlines() if '"Configuration"' not in line]
    assert (ended, lines) == (code, [f"kubenexus: {signal.Signals(number).name} while starting; ended"])


@pytest.mark.parametrize("command", [["agents"], ["cluster", "serve", "--port=0"], ["webhook"]], ids=" ".join)
def test_so_it_is_for_other_commands_that_run_until_interrupted(command: list[str]) -> None:
    assert signalled(signal.SIGTERM, "click", *command) == (0, "kubenexus: SIGTERM while starting; ended\n")


def test_a_command_with_a_result_has_none_after_a_term() -> None:
    code, _ = signalled(signal.SIGTERM, "click", "config", "defaults")
    assert code == -signal.SIGTERM
