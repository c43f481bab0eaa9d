"""A real control plane for tests: etcd and kube-apiserver on free loopback ports, ready in a few seconds.

    with ControlPlane(assets, folder, authorization="RBAC") as plane:
        plane.start_controllers()
        plane.kubectl("get", "nodes")
        plane.kill_apiserver(); plane.start_apiserver()    # the same data, the same address

There are no kubelets and no service accounts in pods: admission of service accounts is off. Nothing is written outside
`folder`, which holds the data, the kubeconfigs and a log for each program.
"""

import secrets
import socket
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from kubenexus.base.errors import KubeNexusError
from kubenexus.testing.controlplane import commands, credentials
from kubenexus.testing.controlplane.cluster import ClusterClient
from kubenexus.testing.controlplane.processes import ManagedProcess, ProcessGroup


class KubectlFailed(KubeNexusError):
    """kubectl ended with an error; the message is its own."""


class ControlPlane:
    """etcd and kube-apiserver of the folder `assets`, optionally with kube-controller-manager and kube-scheduler.

    `users` maps further users to their groups; `admin` always exists and may do everything. `apiserver_flags` come last
    and override others: feature gates, API versions. A program that is not ready after `start_seconds` has failed.
    """

    def __init__(
        self,
        assets: Path,
        folder: Path,
        *,
        authorization: Literal["AlwaysAllow", "RBAC"] = "AlwaysAllow",
        users: Mapping[str, Sequence[str]] | None = None,
        client_ca: Path | None = None,
        apiserver_flags: Sequence[str] = (),
        start_seconds: float = 60.0,
    ) -> None:
        self.folder = folder
        self._assets = assets
        self._authorization = authorization
        self._groups = {credentials.ADMIN: (credentials.MASTERS,), **(users or {})}
        self._tokens = {user: secrets.token_hex(16) for user in self._groups}
        self._client_ca = client_ca
        self._apiserver_flags = tuple(apiserver_flags)
        self._start_seconds = start_seconds
        self._ports = commands.ControlPlanePorts(*free_ports(2))
        self._family: ProcessGroup | None = None
        self._apiserver: ManagedProcess | None = None

    @property
    def server(self) -> str:
        return self._ports.server

    @property
    def authority(self) -> Path:
        """The file that verifies the server's certificate; the server creates it at its first start."""
        return commands.authority(self.folder)

    @property
    def family(self) -> ProcessGroup:
        """The process group for further programs that must end with this process, such as the scheduler under test."""
        assert self._family is not None, "the control plane was not started"
        return self._family

    def start(self) -> Self:
        """Returns when the API server is ready. Raises DidNotStart with the end of a log, after stopping everything."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._family = ProcessGroup(self.folder)
        try:
            self._write_credentials()
            etcd = self._family.start(commands.etcd(self._assets, self.folder, self._ports))
            etcd.until(lambda: _listens(self._ports.etcd), self._start_seconds)
            self._apiserver = self._family.start(self._apiserver_command())
            self._apiserver.until(self._ready, self._start_seconds)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Stops everything that was started here, and nothing else. The folder stays. Safe to call twice."""
        if self._family is not None:
            self._family.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    # ---- faults ------------------------------------------------------------------------------------------------------

    def kill_apiserver(self) -> None:
        """Kills the server with SIGKILL: open watches end in the middle of a line, and the port closes."""
        assert self._apiserver is not None, "the control plane was not started"
        self._apiserver.kill()

    def start_apiserver(self) -> None:
        """Starts the server again after it was killed: same address, same data, same credentials."""
        assert self._apiserver is not None, "the control plane was not started"
        self._apiserver.start()
        self._apiserver.until(self._ready, self._start_seconds)

    # ---- further programs --------------------------------------------------------------------------------------------

    def start_controllers(self, *flags: str) -> ManagedProcess:
        """Starts kube-controller-manager: deployments, jobs, namespaces, volumes, node lifecycle."""
        key = f"--service-account-private-key-file={commands.signing_key(self.folder)}"
        return self.family.start([*self._client("kube-controller-manager"), key, *flags])

    def start_scheduler(self, *flags: str) -> ManagedProcess:
        """Starts kube-scheduler, for comparison."""
        return self.family.start([*self._client("kube-scheduler"), *flags])

    def kubectl(self, *arguments: str, user: str = credentials.ADMIN, stdin: str = "") -> str:
        """Returns the output of kubectl. Raises KubectlFailed."""
        files = [f"--kubeconfig={self.kubeconfig(user)}", f"--cache-dir={self.folder / 'kubectl'}"]
        command = [str(self._assets / "kubectl"), *files, *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False, timeout=120)
        if done.returncode:
            raise KubectlFailed(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    # ---- users -------------------------------------------------------------------------------------------------------

    def token(self, user: str = credentials.ADMIN) -> str:
        return self._tokens[user]

    def kubeconfig(self, user: str = credentials.ADMIN) -> Path:
        """Returns the kubeconfig of this user, with its token inside."""
        return self.kubeconfig_with({"token": self._tokens[user]}, user)

    def kubeconfig_with(self, user: Mapping[str, object], name: str) -> Path:
        """Returns a kubeconfig with this `user` entry: another token, a client certificate, an exec plugin."""
        path = self.folder / f"{name.replace('/', '_')}.kubeconfig"
        path.touch(mode=0o600)
        path.write_text(credentials.kubeconfig(self.server, self.authority.read_bytes(), user, name), encoding="utf-8")
        return path

    def service_account_kubeconfig(self, namespace: str, name: str) -> Path:
        """Returns the kubeconfig of a service account, with a token that the server signed."""
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        return self.kubeconfig_with({"token": self.cluster().send("POST", path, asked)["status"]["token"]}, name)

    def cluster(self, user: str = credentials.ADMIN) -> ClusterClient:
        """Returns a client with the credentials of this user."""
        return ClusterClient(self.server, self.token(user), self._trust())

    # ---- internals ---------------------------------------------------------------------------------------------------

    def _write_credentials(self) -> None:
        commands.signing_key(self.folder).write_text(credentials.signing_key(), encoding="utf-8")
        text = credentials.token_file(self._tokens, self._groups)
        commands.token_file(self.folder).write_text(text, encoding="utf-8")

    def _apiserver_command(self) -> list[str]:
        command = commands.apiserver(self._assets, self.folder, self._ports, self._authorization)
        authority = [f"--client-ca-file={self._client_ca}"] if self._client_ca else []
        return [*command, *authority, *self._apiserver_flags]

    def _client(self, program: str) -> list[str]:
        serve = ["--secure-port=0", "--leader-elect=false"]
        return [str(self._assets / program), f"--kubeconfig={self.kubeconfig()}", *serve]

    def _trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.authority))

    def _ready(self) -> bool:
        asked = urllib.request.Request(f"{self.server}/readyz", headers={"Authorization": f"Bearer {self.token()}"})
        try:
            with urllib.request.urlopen(asked, timeout=5, context=self._trust()):
                return True
        except (OSError, urllib.error.URLError):
            return False


def free_ports(count: int) -> list[int]:
    """Returns different loopback ports that are not in use."""
    sockets = [socket.create_server((commands.LOOPBACK, 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def _listens(port: int) -> bool:
    try:
        with socket.create_connection((commands.LOOPBACK, port), timeout=1):
            return True
    except OSError:
        return False
