"""`kubenexus cluster serve`: one clear line when it cannot, and a clean end."""

import signal
import socket
import subprocess
import sys
from pathlib import Path

COMMAND = [sys.executable, "-m", "kubenexus", "cluster", "serve"]


def run(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *options], capture_output=True, text=True, timeout=30, check=False)


def test_a_port_in_use_is_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run(f"--port={port}")
    assert done.returncode == 1
    assert done.stderr.startswith(f"Error: cannot listen on 127.0.0.1:{port}: ")
    assert done.stderr.count("\n") == 1


def test_the_world_needs_a_token() -> None:
    done = run("--host=0.0.0.0", "--port=0")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "set --token" in done.stderr


def test_an_interrupt_ends_it_cleanly(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    command = [*COMMAND, "--port=0", f"--kubeconfig-out={kubeconfig}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert server.stderr is not None
        assert "serving an empty cluster at http://127.0.0.1:" in server.stdout.readline()
        server.stdout.readline()
        assert kubeconfig.stat().st_mode & 0o077 == 0
        server.send_signal(signal.SIGINT)
        assert server.wait(10) == 0
        assert server.stderr.read() == ""
