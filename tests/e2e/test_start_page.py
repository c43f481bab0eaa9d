"""docs/start.md as a newcomer reads it: its commands, one after the other, in a shell."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.controlplane import build

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "start.md").read_text(encoding="utf-8")
# What a reader waits for with a look at the screen.
WAIT = {
    "cluster serve": 'until [ -s "$KUBECONFIG_FILE" ]; do sleep 0.2; done',
    "agents": 'until [ "$(kubectl get nodes -o name | wc -l)" = 4 ]; do sleep 0.2; done',
    "apply -f examples/gangs/job.yaml": (
        'until [ "$(kubectl get pods --field-selector=status.phase=Running -o name | wc -l)" = 8 ]; do sleep 0.2; done'
    ),
    "run large": "until kubectl get events | grep -q FailedScheduling; do sleep 0.2; done",
}


def commands(title: str) -> list[str]:
    section = PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]
    return [line for block in re.findall(r"```sh\n(.*?)```", section, re.DOTALL) for line in block.splitlines()]


def test_its_commands_give_a_gang_that_runs_and_a_pod_that_says_why_it_waits(assets: Path, tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    script = ["set -e", f"KUBECONFIG_FILE={file}"]
    for line in [*commands("Try it yourself"), *commands("Ask why")]:
        here = line.replace("/tmp/kubeconfig", str(file)).replace(".venv/bin/", f"{Path(sys.executable).parent}/")
        script.append(here.replace("cluster serve ", "cluster serve --port 0 "))
        script += [wait for word, wait in WAIT.items() if word in line]
    environment = os.environ | {"PATH": f"{assets}:{os.environ['PATH']}"}
    process = subprocess.Popen(
        ["bash", "-c", "\n".join(script)],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        printed, problems = _communicate(process)
    finally:
        _end(process)
    assert process.returncode == 2, problems  # of the last command: the pod would not be placed
    assert printed.count("llama-") >= 8
    assert re.search(r"^STARTS AT ONCE IF +node .* has 1\d cpu more|^STARTS AT ONCE IF ", printed, re.MULTILINE), (
        printed
    )
    assert build.missing(assets) == []


def _communicate(process: "subprocess.Popen[str]") -> tuple[str, str]:
    """Waits for the shell alone: what it started in the background keeps the pipes open until it is ended."""
    try:
        process.wait(timeout=180)
    except subprocess.TimeoutExpired:
        pytest.fail("the commands of docs/start.md did not end within 180 s", pytrace=False)
    finally:
        _end(process)
    return process.communicate(timeout=30)


def _end(process: "subprocess.Popen[str]") -> None:
    """Ends what the commands started in the background: it is in the session of the shell."""
    try:
        os.killpg(process.pid, signal.SIGTERM)
    except ProcessLookupError:
        return
