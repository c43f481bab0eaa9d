"""One control plane for all end-to-end tests: it takes longer to start than a test takes to run.

A test gets a namespace of its own and leaves nothing behind; what it made outside is removed after it. A test that
needs controllers, agents or the scheduler asks for their fixture.
"""

import itertools
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kubenexus.testing.controlplane import ClusterClient, ControlPlane, ManagedProcess
from tests.e2e.cleaning import clean
from tests.e2e.controlplane import build
from tests.e2e.provisioner import Provisioner
from tests.e2e.scheduling import Starter

NUMBERS = itertools.count(1)
KEPT = pytest.StashKey[Path]()
MANIFEST = Path(__file__).parents[2] / "deploy" / "kubenexus-scheduler.yaml"
# For tests of who may do what: a user without any rights, and one whom tests may give some.
USERS = {"nobody": ("nobodies",), "somebody": ("somebodies",)}


@pytest.fixture(scope="session")
def assets() -> Path:
    folder = build.assets()
    lacking = build.missing(folder)
    if lacking:
        # A suite that skips itself would look like one that passes.
        pytest.exit(f"no control plane: {folder} lacks {', '.join(lacking)}; run `make controlplane` first", 1)
    return folder


@pytest.fixture(scope="session")
def workloads() -> Path:
    """kube-scheduler's own performance workloads, out of its sources."""
    try:
        return build.provide_workloads()
    except build.CannotBuild as problem:
        pytest.fail(str(problem), pytrace=False)


@pytest.fixture(scope="session")
def plane(assets: Path, request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    folder = Path(tempfile.mkdtemp(prefix="kubenexus-e2e-"))
    request.config.stash[KEPT] = folder
    with ControlPlane(assets, folder, authorization="RBAC", users=USERS) as running:
        yield running
    if not request.session.testsfailed:
        shutil.rmtree(folder)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    folder = config.stash.get(KEPT, None)
    if folder is not None and folder.exists():
        terminalreporter.write_line(f"logs of the control plane: {folder}")


@pytest.fixture
def cluster(plane: ControlPlane) -> Iterator[ClusterClient]:
    seen = plane.cluster()
    yield seen
    clean(seen)


@pytest.fixture
def namespace(cluster: ClusterClient) -> str:
    name = f"e2e-{next(NUMBERS)}"
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    return name


@pytest.fixture
def controllers(plane: ControlPlane) -> Iterator[ManagedProcess]:
    """kube-controller-manager, for this test only: it would also judge the nodes of tests that have no agents."""
    program = plane.start_controllers()
    yield program
    program.stop()


@pytest.fixture
def agents(plane: ControlPlane, cluster: ClusterClient) -> Iterator[Callable[..., ManagedProcess]]:
    """`agents("--nodes=3", ...)`: node agents with these options, once their nodes are registered."""
    started: list[ManagedProcess] = []

    def start(*options: str) -> ManagedProcess:
        command = [sys.executable, "-m", "kubenexus", "agents", f"--kubeconfig={plane.kubeconfig()}", *options]
        program = plane.family.start(command, f"agents-{next(NUMBERS)}")
        started.append(program)
        program.until(lambda: "agents at work" in program.said())
        return program

    yield start
    for program in started:
        program.stop()


@pytest.fixture
def scheduler(plane: ControlPlane) -> Iterator[Callable[..., ManagedProcess]]:
    """`scheduler("--leader-elect=true", ...)`: `kubenexus run` with these options, once it schedules; see `Starter`."""
    with Starter(plane) as starter:
        yield starter


@pytest.fixture
def provisioner(cluster: ClusterClient) -> Iterator[Provisioner]:
    """Makes the volumes of claims that wait for their first consumer."""
    with Provisioner(cluster) as running:
        yield running


@pytest.fixture
def installed(plane: ControlPlane, cluster: ClusterClient) -> Iterator[Path]:
    """What deploy/ installs is applied; the kubeconfig of its service account."""
    plane.kubectl("apply", "--validate=strict", f"--filename={MANIFEST}")
    yield plane.service_account_kubeconfig("kubenexus-system", "kubenexus-scheduler")
    plane.kubectl("delete", "--wait=false", "--ignore-not-found", f"--filename={MANIFEST}")
