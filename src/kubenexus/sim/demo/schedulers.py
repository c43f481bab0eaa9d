"""The scheduler of the demo: ours as a separate process, kube-scheduler for comparison, or none.

The process belongs to a process group that a guard kills when this process ends, in whichever way. The guard waits for
the end of a pipe whose other end only this process holds. It also deletes the folder of the cluster.
"""

import asyncio
import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

from kubenexus.base.errors import KubeNexusError
from kubenexus.sim.demo.manifests import SCHEDULER

OURS, KUBE, NONE = "kubenexus", "kube", "none"
GUARD = 'read -r _; rm -rf -- "$1"; kill -9 0'
LOOK = 0.05  # seconds between checks whether the process runs
FAREWELL = 3.0  # seconds to end in order


class ProgramNotFound(KubeNexusError):
    """There is no such program on this machine."""


class SchedulerProcess:
    """A running scheduler process, or a stand-in without a process."""

    def __init__(self, name: str, child: subprocess.Popen[bytes] | None, log: Path) -> None:
        self.name, self._child, self._log = name, child, log

    def __str__(self) -> str:
        return "nobody" if self._child is None else f"{self.name}, process {self._child.pid}"

    async def ended(self) -> str:
        """Returns when the process has ended, which it should not: its exit code and last log line."""
        while self._child is None or self._child.poll() is None:
            await asyncio.sleep(LOOK)
        lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()
        return f"{self.name} ended with code {self._child.returncode}: {lines[-1] if lines else 'no word'}"

    async def stop(self) -> None:
        """Terminates the process, and kills it after `FAREWELL` seconds: a stopped process cannot end in order."""
        if self._child is None or self._child.poll() is not None:
            return
        self._child.terminate()
        try:
            async with asyncio.timeout(FAREWELL):
                await self.ended()
        except TimeoutError:
            self._child.kill()
            self._child.wait()


@contextlib.asynccontextmanager
async def scheduling(which: str, kubeconfig: Path, port: int = 0) -> AsyncIterator[SchedulerProcess]:
    """Runs the scheduler within the `with`. With `port` ours answers questions there. Raises ProgramNotFound."""
    log = kubeconfig.parent / "scheduler.log"
    if which == NONE:
        yield SchedulerProcess("nobody", None, log)
        return
    command = _ours(kubeconfig, port) if which == OURS else _kube(kubeconfig)
    watch = ["/bin/sh", "-c", GUARD, "guard", str(kubeconfig.parent)]
    with subprocess.Popen(watch, stdin=subprocess.PIPE, process_group=0) as guard:
        with log.open("wb") as out:
            child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, process_group=guard.pid)
        running = SchedulerProcess("kubenexus-scheduler" if which == OURS else "kube-scheduler", child, log)
        try:
            yield running
        finally:
            await running.stop()


def _ours(kubeconfig: Path, port: int) -> list[str]:
    quiet = ["--leader-elect=false", f"--secure-port={port}", "--bind-address=127.0.0.1"]
    return [sys.executable, "-m", "kubenexus", "run", f"--kubeconfig={kubeconfig}", *quiet]


def _kube(kubeconfig: Path) -> list[str]:
    """Uses a profile with our name, so that the same pods are scheduled by it."""
    form = "application/json"
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(kubeconfig), "contentType": form, "acceptContentTypes": form},
        "leaderElection": {"leaderElect": False},
        "profiles": [{"schedulerName": SCHEDULER}],
    }
    path = kubeconfig.parent / "kube-scheduler.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    return [str(find_kube_scheduler()), f"--config={path}", "--secure-port=0"]


def find_kube_scheduler(env: Mapping[str, str] = os.environ) -> Path:
    """Looks in KUBEBUILDER_ASSETS, where `make controlplane` puts it, and on the PATH. Raises ProgramNotFound."""
    name = "kube-scheduler"
    cache = Path(env.get("XDG_CACHE_HOME") or Path(env.get("HOME", "~")).expanduser() / ".cache")
    built = sorted((cache / "kubenexus" / "controlplane").glob(f"*/{name}"), key=lambda path: -path.stat().st_mtime)
    given = [Path(env["KUBEBUILDER_ASSETS"]) / name] if env.get("KUBEBUILDER_ASSETS") else []
    found = shutil.which(name, path=env.get("PATH", ""))
    for path in [*given, *built, *([Path(found)] if found else [])]:
        if os.access(path, os.X_OK):
            return path
    raise ProgramNotFound(
        "--scheduler kube: no kube-scheduler in KUBEBUILDER_ASSETS, in the user's cache or on the PATH; "
        "`make controlplane` builds one"
    )
