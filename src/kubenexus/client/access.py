"""Where the API server is and who we are: one value, whether it came from a kubeconfig, from the pod we run in, or from
`--master`."""

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from kubenexus.base.clock import Clock
from kubenexus.client import kubeconfig as files
from kubenexus.client.credentials import AccessError, Credentials, Fixed, TokenFile
from kubenexus.client.dial import Address
from kubenexus.client.places import address_of, proxy_for
from kubenexus.client.tls import Material, Trust

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class Access(msgspec.Struct, frozen=True):
    """All that a client needs to know. `source` says where it was found; `headers` go with every call."""

    address: Address
    trust: Trust
    credentials: Credentials
    source: str = ""
    namespace: str = ""
    headers: tuple[tuple[str, str], ...] = ()


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What the user said on the command line or in the configuration; empty means not said."""

    kubeconfig: str = ""
    context: str = ""
    master: str = ""


def find_access(
    wish: Wish, clock: Clock, *, env: Mapping[str, str] = os.environ, account: Path = SERVICE_ACCOUNT
) -> Access:
    """The first of: the named kubeconfig, `$KUBECONFIG`, `~/.kube/config`, the pod we run in, `--master` alone.

    For commands, once at start. Raises AccessError with one line that names the file and the field.
    """
    paths = files.paths(wish.kubeconfig, env)
    if paths:
        return _from_files(paths, wish, clock, env)
    if env.get("KUBERNETES_SERVICE_HOST") and env.get("KUBERNETES_SERVICE_PORT"):
        return _in_cluster(wish, clock, env, account)
    if wish.master:
        address = _master(wish.master, env)
        return Access(address, Trust(), Fixed(), "--master")
    raise AccessError("no cluster: give --kubeconfig, set KUBECONFIG, or run in a pod with a service account")


def _from_files(paths: list[str], wish: Wish, clock: Clock, env: Mapping[str, str]) -> Access:
    chosen = files.choose(files.load(paths), wish.context)
    server = wish.master or chosen.server
    subject = "--master" if wish.master else chosen.cluster_at + ".server"
    address = address_of(server, subject)
    proxy = proxy_for(address, chosen.proxy_url, chosen.cluster_at + ".proxy-url", env)
    address = msgspec.structs.replace(address, proxy=proxy, server_name=chosen.server_name)
    trust = Trust(chosen.authority, chosen.certificate, insecure=chosen.insecure)
    if address.tls:
        trust.check(clock.now())
    return Access(address, trust, chosen.credentials(clock, env), chosen.source, chosen.namespace, chosen.headers)


def _in_cluster(wish: Wish, clock: Clock, env: Mapping[str, str], account: Path) -> Access:
    host, port = env["KUBERNETES_SERVICE_HOST"], env["KUBERNETES_SERVICE_PORT"]
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    address = _master(wish.master or server, env)
    trust = Trust(Material(f"in-cluster: {account / 'ca.crt'}", path=str(account / "ca.crt")))
    trust.check(clock.now())
    credentials = TokenFile(str(account / "token"), clock, subject="in-cluster")
    return Access(address, trust, credentials, "in-cluster", _namespace(account))


def _namespace(account: Path) -> str:
    try:
        return (account / "namespace").read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _master(server: str, env: Mapping[str, str]) -> Address:
    address = address_of(server, "--master")
    return msgspec.structs.replace(address, proxy=proxy_for(address, "", "", env))
