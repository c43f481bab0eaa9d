"""`make conformance`: Kubernetes' own scheduling specs against a scheduler that stands in as `default-scheduler`.

    python -m tests.conformance.run [kubenexus | kube-scheduler] [--focus TEXT]

A real etcd, API server and controller manager; five nodes played by our agents. The specs are built from the same
version of Kubernetes (`specs/`), once for each set of pins. A table of spec and verdict is printed; `expected.txt`
lists what passes with kube-scheduler here. Exit code 0 if every spec of that list passes.
"""

import hashlib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

import click

from kubenexus.testing.controlplane import ControlPlane, ManagedProcess
from tests.e2e.controlplane import build

HERE = Path(__file__).parent
EXPECTED = HERE / "expected.txt"
NODES = 5
# PodGroups and Workloads are served only if they are switched on; the specs about them have privileged containers.
GATES = "--feature-gates=GenericWorkload=true"
SERVED = (GATES, "--runtime-config=scheduling.k8s.io/v1beta1=true", "--allow-privileged=true")
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: "%s"}
profiles: [{schedulerName: default-scheduler}]
"""


def suite() -> Path:
    """The program with the specs, built if it is not there."""
    pins = hashlib.sha256(
        b"".join((HERE / "specs" / name).read_bytes() for name in ("go.mod", "go.sum", "specs_test.go"))
    )
    program = build.assets().parent / f"specs-{pins.hexdigest()[:16]}"
    if not os.access(program, os.X_OK):
        fresh = program.with_suffix(".new")
        command = ["go", "test", "-c", "-mod=readonly", "-trimpath", "-o", str(fresh), "."]
        subprocess.run(command, cwd=HERE / "specs", env={**os.environ, "CGO_ENABLED": "0"}, check=True)
        fresh.rename(program)
    return program


def start(which: str, plane: ControlPlane) -> ManagedProcess:
    config = plane.folder / "scheduler.yaml"
    config.write_text(CONFIG % plane.kubeconfig(), encoding="utf-8")
    ours = [sys.executable, "-m", "kubenexus", "run"]
    command = ours if which == "kubenexus" else [str(build.assets() / which), GATES]
    return plane.family.start([*command, f"--config={config}", "--secure-port=0"], which)


def agents(plane: ControlPlane) -> ManagedProcess:
    command = [sys.executable, "-m", "kubenexus", "agents", f"--kubeconfig={plane.kubeconfig()}", f"--nodes={NODES}"]
    program = plane.family.start(
        [*command, "--cpu=8", "--memory=32Gi", "--resource=ephemeral-storage=100Gi", "--zone=zone-a", "--zone=zone-b"],
        "agents",
    )
    program.until(lambda: "agents at work" in program.said())
    return program


def run(which: str, focus: str, folder: Path) -> dict[str, str]:
    """Verdicts by the names of the specs."""
    report = folder / "report.xml"
    with ControlPlane(build.assets(), folder, apiserver_flags=SERVED) as plane:
        plane.start_controllers(GATES)
        agents(plane)
        start(which, plane)
        command = [str(suite()), f"-kubeconfig={plane.kubeconfig()}", "-provider=skeleton", "-ginkgo.no-color"]
        command += [f"-ginkgo.focus={focus}", f"-ginkgo.junit-report={report}", "-ginkgo.timeout=40m"]
        with (folder / "specs.log").open("wb") as log:
            subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, check=False)
    return verdicts(report)


def verdicts(report: Path) -> dict[str, str]:
    found = {}
    for case in ElementTree.parse(report).iter("testcase"):
        name = case.get("name", "").removeprefix("[It] ")
        if "[sig-scheduling]" in name and case.get("status") != "skipped":
            found[name] = case.get("status", "")
    return found


@click.command()
@click.argument("which", default="kubenexus", type=click.Choice(["kubenexus", "kube-scheduler"]))
@click.option("--focus", default=r"\[sig-scheduling\]", help="Specs whose names match this.")
@click.option("--record", is_flag=True, help="Write what passed to expected.txt (with kube-scheduler).")
def main(which: str, focus: str, record: bool) -> None:
    folder = Path(tempfile.mkdtemp(prefix="kubenexus-conformance-"))
    found = run(which, focus, folder)
    for name, verdict in sorted(found.items()):
        click.echo(f"{verdict:8} {name}")
    passed = sorted(name for name, verdict in found.items() if verdict == "passed")
    click.echo(f"{which}: {len(passed)} of {len(found)} specs passed; logs in {folder}")
    if record:
        EXPECTED.write_text("\n".join(passed) + "\n", encoding="utf-8")
        return
    expected = [name for name in EXPECTED.read_text(encoding="utf-8").splitlines() if re.search(focus, name)]
    failed = [name for name in expected if found.get(name) != "passed"]
    for name in failed:
        click.echo(f"FAILED: {name}")
    raise SystemExit(1 if failed or not expected else 0)


if __name__ == "__main__":
    main()
