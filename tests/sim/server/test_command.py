"""`kubenexus cluster serve`: one clear line when it cannot, and a clean end."""

import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.async_helpers import HANGS
from tests.contract.http import Http

COMMAND = [sys.executable, "-m", "kubenexus", "cluster", "serve"]


def run(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *options], capture_output=True, text=True, timeout=HANGS, check=False)


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
        assert server.wait(HANGS) == 0
        assert server.stderr.read() == ""


def test_a_request_that_is_none_does_not_keep_it_from_answering_and_from_ending() -> None:
    with subprocess.Popen([*COMMAND, "--port=0"], stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            port = int(server.stdout.readline().split()[5].rstrip(";").rpartition(":")[2])
            for sent, code in (
                (b"POST /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n-6\r\n", b"400"),
                (b"GET /healthz HTTP/1.1\r\n\r\n", b"200"),
            ):
                with socket.create_connection(("127.0.0.1", port), timeout=HANGS) as link:
                    link.sendall(sent)
                    assert link.recv(100).split()[1] == code
            server.send_signal(signal.SIGTERM)
            assert server.wait(HANGS) == 0
        finally:
            server.kill()


def test_a_second_interrupt_ends_it_at_once() -> None:
    """The first cannot: something is under way that never ends."""
    with subprocess.Popen(
        [sys.executable, "-c", STUCK], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as one:
        assert one.stdout is not None
        assert one.stderr is not None
        assert one.stdout.readline() == "here\n"
        one.send_signal(signal.SIGINT)
        assert one.stdout.readline() == "ending\n"
        one.send_signal(signal.SIGINT)
        assert one.wait(10) == 130
        assert one.stderr.read() == "interrupted twice: ended at once\n"


STUCK = """
import asyncio
from kubenexus.cli.interrupts import interrupt_event

async def main():
    ended = interrupt_event()
    print("here", flush=True)
    await ended.wait()
    print("ending", flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


def test_it_has_nodes_and_controllers() -> None:
    command = [*COMMAND, "--port=0", "--nodes=3"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            said = server.stdout.readline()
            assert said.startswith("serving a cluster of 3 nodes at http://127.0.0.1:")
            nodes, pod = _a_job_is_asked_for(said.split()[7].rstrip(";"))
        finally:
            server.send_signal(signal.SIGINT)
        assert (nodes, pod["metadata"]["generateName"]) == (3, "once-")
        assert server.wait(HANGS) == 0


def _a_job_is_asked_for(address: str) -> tuple[int, Any]:
    """How many nodes there are, and the first pod."""
    http = Http(address)
    nodes = len(http.ask("GET", "/api/v1/nodes").json["items"])
    spec = {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}
    http.ask("POST", "/apis/batch/v1/namespaces/default/jobs", {"metadata": {"name": "once"}, "spec": spec})
    with http.watch("/api/v1/namespaces/default/pods?watch=1") as events:
        pod = events.next()["object"]
    http.close()
    return nodes, pod
