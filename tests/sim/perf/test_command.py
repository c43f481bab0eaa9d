"""`kubenexus simulate scheduler-perf`: what is printed, and the exit code."""

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kubenexus.cli import main
from tests.sim.perf.workloads import a_case, a_template, asking

NODES = {"opcode": "createNodes", "count": 2}
PODS = {"opcode": "createPods", "count": 6}
COMMAND = [sys.executable, "-m", "kubenexus", "simulate", "scheduler-perf"]


def simulate(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["simulate", "scheduler-perf", *map(str, arguments)])


def test_a_table_and_a_summary(tmp_path: Path) -> None:
    done = simulate(a_case(tmp_path, NODES, PODS))
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    assert lines[0].startswith("Case/w: ok, 6/6 scheduled in 1.00")
    assert lines[2].split() == ["workload", "nodes", "scheduled/must", "virtual", "s", "real", "s", "pods/s"]
    assert lines[3].split()[:3] == ["Case/w", "2", "6/6"]
    assert lines[-1].startswith("1 of 1 workloads ended as they must, 6 pods in ")
    assert "; 0 not played; decisions " in lines[-1]


def test_one_that_does_not_end_as_it_must_is_exit_code_1(tmp_path: Path) -> None:
    big = a_template(tmp_path, "big.yaml", asking("9"))
    done = simulate(a_case(tmp_path, NODES, {**PODS, "podTemplatePath": big}))
    assert done.exit_code == 1
    assert "FAILED:\n  Case/w: after 600 s namespace-1/pod-" in done.output
    assert "Insufficient cpu" in done.output
    assert "0 of 1 workloads ended as they must" in done.output


def test_what_is_not_played_is_listed_by_name_and_reason(tmp_path: Path) -> None:
    done = simulate(a_case(tmp_path, NODES, {**PODS, "steadyState": True}))
    assert done.exit_code == 0
    assert "not played:\n  Case/w: needs pods created in a steady state\n" in done.output
    assert "0 of 0 workloads ended as they must; 1 not played" in done.output


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("- name: [", "not YAML: "),
        ("- {name: A, workloads: [], workloadTemplate: [{opcode: fly}]}", "unknown opcode 'fly'; expected one of "),
    ],
)
def test_a_bad_file_is_one_line_and_no_traceback(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(text, encoding="utf-8")
    done = simulate(file)
    assert done.exit_code == 1
    assert done.output.startswith(f"Error: {file}: ")
    assert problem in done.output
    assert done.output.count("\n") == 1


def test_nothing_to_play_is_told(tmp_path: Path) -> None:
    done = simulate(a_case(tmp_path, NODES), "--label", "short")
    assert (done.exit_code, done.output) == (1, "Error: no workload has these labels and names\n")
    done = simulate(tmp_path / "nowhere")
    assert (done.exit_code, done.output) == (1, f"Error: {tmp_path / 'nowhere'}: no such file or folder\n")
    done = simulate(a_case(tmp_path, NODES), "--log", tmp_path / "no" / "log")
    assert (done.exit_code, done.output) == (
        1,
        f"Error: cannot write {tmp_path / 'no' / 'log'}: No such file or directory\n",
    )


def test_two_processes_write_the_same_log(tmp_path: Path) -> None:
    """Whatever order their sets and dictionaries have."""
    file = a_case(tmp_path, {**NODES, "count": 5}, {**PODS, "count": 60})
    logs = []
    for number in ("1", "2"):
        log = tmp_path / number
        command = [*COMMAND, str(file), "--seed=7", f"--log={log}"]
        subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": number}, check=True, capture_output=True)
        logs.append(log.read_text(encoding="utf-8"))
    assert logs[0] == logs[1]
    assert logs[0].startswith("# Case/w\n")
    assert logs[0].count(" -> ") == 60


def test_an_interrupt_is_one_word(tmp_path: Path) -> None:
    """In the middle of a play that would take days, after a short one."""
    for folder, seconds in (("a", 1), ("b", 10**9)):
        (tmp_path / folder).mkdir()
        a_case(tmp_path / folder, NODES, {"opcode": "sleep", "duration": f"{seconds}s"})
    with subprocess.Popen(
        [*COMMAND, str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        try:
            assert running.stdout is not None
            assert "Case/w: ok" in running.stdout.readline()
            running.send_signal(signal.SIGINT)
            printed, problem = running.communicate(timeout=120)
        finally:
            running.kill()
    assert (running.returncode, printed, problem) == (130, "", "interrupted\n")


def test_who_watches_sees_a_bar(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    subprocess.run([*COMMAND, str(a_case(tmp_path, NODES, PODS))], stdout=theirs, check=True)
    os.close(theirs)
    seen = b""
    try:
        while more := os.read(ours, 65536):
            seen += more
    except OSError:  # so a terminal says that the other side is gone
        pass
    os.close(ours)
    assert b"playing" in seen
    assert b"100%" in seen
    assert b"1 of 1 workloads ended as they must" in seen
