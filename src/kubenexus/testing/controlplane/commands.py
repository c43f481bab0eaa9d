"""The commands of etcd and kube-apiserver, and the files of a control plane."""

from pathlib import Path
from typing import NamedTuple

LOOPBACK = "127.0.0.1"
CLUSTER_IPS = "10.96.0.0/16"


class ControlPlanePorts(NamedTuple):
    """The ports of etcd and kube-apiserver."""

    etcd: int
    apiserver: int

    @property
    def store(self) -> str:
        return f"http://{LOOPBACK}:{self.etcd}"

    @property
    def server(self) -> str:
        return f"https://{LOOPBACK}:{self.apiserver}"


def authority(folder: Path) -> Path:
    """Returns the certificate that the server signs itself at its first start and keeps."""
    return folder / "certificates" / "apiserver.crt"


def signing_key(folder: Path) -> Path:
    return folder / "service-accounts.key"


def token_file(folder: Path) -> Path:
    return folder / "tokens.csv"


def etcd(assets: Path, folder: Path, ports: ControlPlanePorts) -> list[str]:
    return [
        str(assets / "etcd"),
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={ports.store}",
        f"--advertise-client-urls={ports.store}",
        f"--listen-peer-urls=http://{LOOPBACK}:0",
        "--unsafe-no-fsync",  # the data need not survive a power cut
        "--log-level=warn",
    ]


def apiserver(assets: Path, folder: Path, ports: ControlPlanePorts, authorization: str) -> list[str]:
    key = signing_key(folder)
    return [
        str(assets / "kube-apiserver"),
        f"--etcd-servers={ports.store}",
        f"--bind-address={LOOPBACK}",
        f"--advertise-address={LOOPBACK}",
        f"--secure-port={ports.apiserver}",
        f"--cert-dir={authority(folder).parent}",
        f"--token-auth-file={token_file(folder)}",
        f"--authorization-mode={authorization}",
        "--disable-admission-plugins=ServiceAccount",
        f"--service-account-issuer={ports.server}",
        f"--service-account-key-file={key}",
        f"--service-account-signing-key-file={key}",
        f"--service-cluster-ip-range={CLUSTER_IPS}",
        "--endpoint-reconciler-type=none",  # a loopback address is not a valid endpoint
    ]
