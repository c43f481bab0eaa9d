"""Parses the server's URL, a proxy's URL, and the list of hosts that need no proxy."""

import ipaddress
from collections.abc import Mapping
from urllib.parse import SplitResult, unquote, urlsplit

from kubenexus.client.credentials import ClientConfigError
from kubenexus.client.dial import Proxy, ServerAddress


def parse_server_url(url: str, subject: str) -> ServerAddress:
    """Returns the address in a URL. Without a scheme it is https: nothing is sent in the clear by omission."""
    if not url:
        raise ClientConfigError(f"{subject}: no server is named")
    parts, port = _split(url if "://" in url else f"https://{url}", subject)
    if parts.scheme not in ("http", "https"):
        raise ClientConfigError(f"{subject}: {url!r} begins with neither https:// nor http://")
    if parts.query or parts.fragment or parts.username:
        raise ClientConfigError(f"{subject}: {url!r} has more in it than a host, a port and a path")
    tls = parts.scheme == "https"
    prefix = parts.path.rstrip("/")
    if not prefix.isascii() or not prefix.isprintable() or " " in prefix:
        raise ClientConfigError(f"{subject}: {url!r} has a path that no request can have")
    return ServerAddress(parts.hostname or "", port or (443 if tls else 80), tls, prefix)


def proxy_for_server(address: ServerAddress, url: str, subject: str, env: Mapping[str, str]) -> Proxy | None:
    """Returns the proxy of the kubeconfig, else that of the environment, as `curl` and kubectl read it."""
    if url:
        return _proxy(url, subject)
    name = "https_proxy" if address.tls else "http_proxy"
    found = env.get(name) or env.get(name.upper())
    if not found or _needs_none(address, env.get("no_proxy") or env.get("NO_PROXY") or ""):
        return None
    return _proxy(found if "://" in found else f"http://{found}", name.upper())


def _proxy(url: str, subject: str) -> Proxy:
    parts, port = _split(url, subject)
    if parts.scheme not in ("http", "https"):
        raise ClientConfigError(
            f"{subject}: a proxy must be http:// or https://, not {parts.scheme or 'without a scheme'}"
        )
    secret = f"{unquote(parts.username)}:{unquote(parts.password or '')}" if parts.username else ""
    tls = parts.scheme == "https"
    return Proxy(parts.hostname or "", port or (443 if tls else 80), tls, secret)


def _split(url: str, subject: str) -> tuple[SplitResult, int | None]:
    # A URL may contain a password, so messages do not quote it.
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ClientConfigError(f"{subject}: not a URL: {error}") from None
    if not parts.hostname:
        raise ClientConfigError(f"{subject}: names no host")
    return parts, port


def _needs_none(address: ServerAddress, excepted: str) -> bool:
    """Whether NO_PROXY has the host: by name, by the end of its name, by address or network. Loopback always does."""
    host = address.host.lower()
    ip = _ip(host)
    if host == "localhost" or (ip is not None and ip.is_loopback):
        return True
    entries = [entry.strip().lower() for entry in excepted.split(",")]
    return any(_matches(entry, host, address.port, ip) for entry in entries if entry)


def _matches(entry: str, host: str, port: int, ip: ipaddress.IPv4Address | ipaddress.IPv6Address | None) -> bool:
    if entry == "*":
        return True
    if ip is not None and "/" in entry:
        try:
            return ip in ipaddress.ip_network(entry, strict=False)
        except ValueError:
            return False
    if entry.count(":") == 1:
        entry, _, wanted = entry.partition(":")
        if wanted != str(port):
            return False
    bare = entry.lstrip("*").lstrip(".")
    return host.endswith("." + bare) or (host == bare and not entry.startswith((".", "*.")))


def _ip(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
