"""Who is measured, and how each is started: as it would run in a cluster, and as fast as it may."""

import compileall
import sys
from collections.abc import Callable, Sequence
from typing import Final

import bench
import kubenexus
from bench.live.cases import SCHEDULER
from kubenexus.testing.controlplane import ControlPlane, ManagedProcess, free_ports
from tests.e2e.controlplane import build

OURS: Final = "kubenexus"
THEIRS: Final = "kube-scheduler"
NULL: Final = "null-binder"

CONFIGURATION: Final = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: "%s", qps: 5000, burst: 5000}
profiles: [{schedulerName: %s}]
"""


def as_installed() -> None:
    """pip compiles what it installs. A working tree may never have been, and would begin every run by compiling."""
    for package in (kubenexus, bench):
        compileall.compile_dir(package.__path__[0], quiet=1)


def start(who: str, plane: ControlPlane, gates: Sequence[str] = ()) -> ManagedProcess:
    """The process, just started. It ends with the control plane, or when it is stopped. kube-scheduler has the same
    `gates` open as the API server; the others have none."""
    opened = [f"--feature-gates={','.join(f'{gate}=true' for gate in gates)}"] if gates and who == THEIRS else []
    return plane.family.start([*CONTESTANTS[who](plane), *opened], who)


def _scheduler(command: list[str], plane: ControlPlane) -> list[str]:
    config = plane.folder / "measured.yaml"
    config.write_text(CONFIGURATION % (plane.kubeconfig(), SCHEDULER))
    return [*command, f"--config={config}", "--bind-address=127.0.0.1", f"--secure-port={free_ports(1)[0]}"]


def _ours(plane: ControlPlane) -> list[str]:
    return _scheduler([sys.executable, "-m", "kubenexus", "run"], plane)


def _theirs(plane: ControlPlane) -> list[str]:
    return _scheduler([str(build.assets() / THEIRS)], plane)


def _null(plane: ControlPlane) -> list[str]:
    """Its token goes by a file: a command line can be read by everybody."""
    token = plane.folder / "null-binder.token"
    token.touch(mode=0o600)
    token.write_text(plane.token())
    return [sys.executable, "-m", "bench.live.null_binder", plane.server, str(plane.authority), str(token)]


CONTESTANTS: Final[dict[str, Callable[[ControlPlane], list[str]]]] = {THEIRS: _theirs, NULL: _null, OURS: _ours}
