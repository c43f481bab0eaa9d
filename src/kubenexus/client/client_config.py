"""`ClientConfig`: the address of the API server and the credentials, from a kubeconfig, a service account or
`--master`."""

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from kubenexus.base.clock import Clock
from kubenexus.client import kubeconfig as files
from kubenexus.client.credentials import ClientConfigError, Credentials, StaticCredentials, TokenFileCredentials
from kubenexus.client.dial import ServerAddress
from kubenexus.client.server_urls import parse_server_url, proxy_for_server
from kubenexus.client.tls import PemSource, TlsContextFactory

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class ClientConfig(msgspec.Struct, frozen=True):
    """Configuration of a client. `source` is where it was found; `headers` are sent with every call."""

    address: ServerAddress
    trust: TlsContextFactory
    credentials: Credentials
    source: str = ""
    namespace: str = ""
    headers: tuple[tuple[str, str], ...] = ()


class ClientOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options from the command line or the configuration; empty means not set."""

    kubeconfig: str = ""
    context: str = ""
    master: str = ""


def load_client_config(
    options: ClientOptions, clock: Clock, *, env: Mapping[str, str] = os.environ, account: Path = SERVICE_ACCOUNT
) -> ClientConfig:
    """Returns the first of: the named kubeconfig, `$KUBECONFIG`, `~/.kube/config`, the pod's service account,
    `--master` alone.

    Commands call it once at start. Raises ClientConfigError with one line that names the file and the field.
    """
    paths = files.kubeconfig_paths(options.kubeconfig, env)
    if paths:
        return _from_files(paths, options, clock, env)
    if env.get("KUBERNETES_SERVICE_HOST") and env.get("KUBERNETES_SERVICE_PORT"):
        return _in_cluster(options, clock, env, account)
    if options.master:
        address = _master(options.master, env)
        return ClientConfig(address, TlsContextFactory(), StaticCredentials(), "--master")
    raise ClientConfigError("no cluster: give --kubeconfig, set KUBECONFIG, or run in a pod with a service account")


def _from_files(paths: list[str], options: ClientOptions, clock: Clock, env: Mapping[str, str]) -> ClientConfig:
    chosen = files.select_context(files.load_kubeconfig(paths), options.context)
    server = options.master or chosen.server
    subject = "--master" if options.master else chosen.cluster_at + ".server"
    address = parse_server_url(server, subject)
    proxy = proxy_for_server(address, chosen.proxy_url, chosen.cluster_at + ".proxy-url", env)
    address = msgspec.structs.replace(address, proxy=proxy, server_name=chosen.server_name)
    trust = TlsContextFactory(chosen.authority, chosen.certificate, insecure=chosen.insecure)
    if address.tls:
        trust.check(clock.now())
    return ClientConfig(address, trust, chosen.credentials(clock, env), chosen.source, chosen.namespace, chosen.headers)


def _in_cluster(options: ClientOptions, clock: Clock, env: Mapping[str, str], account: Path) -> ClientConfig:
    host, port = env["KUBERNETES_SERVICE_HOST"], env["KUBERNETES_SERVICE_PORT"]
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    address = _master(options.master or server, env)
    trust = TlsContextFactory(PemSource(f"in-cluster: {account / 'ca.crt'}", path=str(account / "ca.crt")))
    trust.check(clock.now())
    credentials = TokenFileCredentials(str(account / "token"), clock, subject="in-cluster")
    return ClientConfig(address, trust, credentials, "in-cluster", _namespace(account))


def _namespace(account: Path) -> str:
    try:
        return (account / "namespace").read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _master(server: str, env: Mapping[str, str]) -> ServerAddress:
    address = parse_server_url(server, "--master")
    return msgspec.structs.replace(address, proxy=proxy_for_server(address, "", "", env))
