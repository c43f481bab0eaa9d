"""The schedulers on trial: real processes, each behind a door of the proxy, started again whenever they end."""

import contextlib
import json
import os
import re
import signal
import sys
from pathlib import Path
from typing import Final

from kubenexus.testing.controlplane import ControlPlane, ManagedProcess
from tests.chaos.proxy import Proxy

LEASE_SECONDS: Final = 6
RENEW_SECONDS: Final = 4.0
ELECTION: Final = (
    "--leader-elect=true",
    f"--leader-elect-lease-duration={LEASE_SECONDS}s",
    f"--leader-elect-renew-deadline={RENEW_SECONDS:g}s",
    "--leader-elect-retry-period=500ms",
)
# Everybody waits a second or two instead of up to ten, so that a seed takes seconds.
CONFIGURATION: Final = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "podInitialBackoffSeconds": 1,
    "podMaxBackoffSeconds": 2,
    "profiles": [
        {
            "schedulerName": "kubenexus-scheduler",
            "pluginConfig": [
                {"name": "Coscheduling", "args": {"gangDeadlineSeconds": 5, "reservationSeconds": 2}},
                {"name": "GangPreemption", "args": {"cooldownSeconds": 2}},
            ],
        }
    ],
}
DIGEST: Final = re.compile(r'"Ledger" digest="(\w+)"')


class Replicas:
    """`who` is how the proxy calls a process: `r0.2` is the second life of replica 0."""

    def __init__(self, plane: ControlPlane, proxy: Proxy, namespace: str, count: int) -> None:
        self._plane, self._proxy, self._namespace = plane, proxy, namespace
        self._lives = [0] * count
        self._programs: dict[int, ManagedProcess] = {}
        self._config = plane.folder / "chaos.json"
        self._config.write_text(json.dumps(CONFIGURATION), encoding="utf-8")
        self.recordings: list[Path] = []  # of each life

    @property
    def starts(self) -> int:
        return sum(self._lives)

    def keep(self) -> None:
        """Starts whatever does not run, as a kubelet would."""
        for number in range(len(self._lives)):
            program = self._programs.get(number)
            if program is None or not program.running:
                self._start(number)

    def signal(self, who: str, what: signal.Signals) -> None:
        """To that process, if it still lives."""
        number, _, life = who.removeprefix("r").partition(".")
        if self._lives[int(number)] == int(life):
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._programs[int(number)].pid, what)

    def digests(self) -> dict[str, str]:
        """What each process last said its ledger is, a standby's too; asks them to say so again."""
        found = dict[str, str]()
        for number, program in self._programs.items():
            said = program.said()
            if program.running and '"Starting"' in said:  # sooner, the signal would end it
                found[f"r{number}"] = ["", *DIGEST.findall(said)][-1]
                self.signal(f"r{number}.{self._lives[number]}", signal.SIGUSR2)
        return found

    def logs(self) -> list[Path]:
        return [program.log for program in self._programs.values()]

    def stop(self) -> None:
        for program in self._programs.values():
            program.kill()

    def _start(self, number: int) -> None:
        self._lives[number] += 1
        who = f"r{number}.{self._lives[number]}"
        election = [*ELECTION, f"--leader-elect-resource-namespace={self._namespace}"]
        files = [f"--kubeconfig={self._kubeconfig(who)}", f"--config={self._config}"]
        folder = self._plane.folder / f"{self._namespace}-{who}.recording"
        self.recordings.append(folder)
        files += [f"--record={folder}", "--record-max=64Mi"]
        command = [sys.executable, "-m", "kubenexus", "run", *files, "--secure-port=0", *election]
        self._programs[number] = self._plane.family.start(command, f"{self._namespace}-{who}")

    def _kubeconfig(self, who: str) -> Path:
        """To the proxy, in plain HTTP: what is said there is nobody's secret."""
        server = f"http://127.0.0.1:{self._proxy.open(who)}"
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "chaos", "cluster": {"server": server}}],
            "users": [{"name": "admin", "user": {"token": self._plane.token()}}],
            "contexts": [{"name": "chaos", "context": {"cluster": "chaos", "user": "admin"}}],
            "current-context": "chaos",
        }
        path = self._plane.folder / f"{self._namespace}-{who}.kubeconfig"
        path.touch(mode=0o600)
        path.write_text(json.dumps(content), encoding="utf-8")
        return path
