"""The processes of a soak: an API server (the embedded one, or a real one with etcd) and the scheduler."""

import contextlib
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bench.soak.objects import SCHEDULER
from kubenexus.testing.controlplane import ControlPlane, ManagedProcess, ProcessGroup, free_ports
from tests.e2e.controlplane import build

OURS = [sys.executable, "-m", "kubenexus"]


class Server(NamedTuple):
    """Where it is, and whose family further programs belong to."""

    kubeconfig: Path
    token: str
    family: ProcessGroup


class Scheduler(NamedTuple):
    program: ManagedProcess
    address: str  # of its /metrics


@contextlib.contextmanager
def embedded(folder: Path) -> Iterator[Server]:
    """Ours, in memory. It believes every token."""
    family, (port,), kubeconfig = ProcessGroup(folder), free_ports(1), folder / "kubeconfig"
    try:
        command = [*OURS, "cluster", "serve", f"--port={port}", f"--kubeconfig-out={kubeconfig}"]
        family.start(command, "server").until(lambda: _answers(f"http://127.0.0.1:{port}/version"))
        yield Server(kubeconfig, "anybody", family)
    finally:
        family.close()


@contextlib.contextmanager
def real(folder: Path) -> Iterator[Server]:
    """etcd and kube-apiserver (`make controlplane` first)."""
    with ControlPlane(build.assets(), folder) as plane:
        yield Server(plane.kubeconfig(), plane.token(), plane.family)


SERVERS = {"embedded": embedded, "real": real}


def scheduler(server: Server) -> Scheduler:
    """As it would run in a cluster, alone."""
    (port,) = free_ports(1)
    whose = [f"--kubeconfig={server.kubeconfig}", f"--scheduler-name={SCHEDULER}", "--leader-elect=false"]
    serve = ["--bind-address=127.0.0.1", f"--secure-port={port}"]
    return Scheduler(server.family.start([*OURS, "run", *whose, *serve], "scheduler"), f"https://127.0.0.1:{port}")


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=5):
            return True
    except OSError:
        return False
