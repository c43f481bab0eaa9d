"""Through a proxy: a tunnel to the server, over which everything is as without one."""

import asyncio
import contextlib

import pytest

from kubenexus.client.calls import Call, Unreachable
from kubenexus.client.credentials import ClientConfigError
from kubenexus.client.dial import Proxy, ServerAddress
from kubenexus.client.server_urls import parse_server_url, proxy_for_server
from kubenexus.client.tls import PemSource, TlsContextFactory
from tests.client.conftest import Papers
from tests.client.server import Talk, a_client, answering, both_loops, http, run, serving

GET = Call("GET", "/x")


async def tunnel(talk: Talk) -> None:
    """A proxy that does what it is asked."""
    request = await talk.request()
    assert request is not None
    assert request.method == "CONNECT"
    host, _, port = request.path.partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    await talk.say(b"HTTP/1.1 200 Connection established\r\n\r\n")
    try:
        await asyncio.gather(_pump(talk.reader, writer), _pump(reader, talk.writer))
    finally:
        writer.transport.abort()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.transport.abort()


@both_loops
@pytest.mark.parametrize("tls", [False, True])
def test_a_call_through_a_tunnel(run, papers: Papers, tls: bool) -> None:
    async def main() -> None:
        context = papers.serving() if tls else None
        async with serving(answering(then=http(b"hello")), tls=context) as server, serving(tunnel) as proxy:
            trust = TlsContextFactory(PemSource("ca", path=str(papers.authority))) if tls else None
            client = a_client(server.port, trust=trust, proxy=Proxy("127.0.0.1", proxy.port, secret="me:secret"))
            assert await client.send(GET) == b"hello"
            assert await client.send(GET) == b"hello"
            (asked,) = proxy.requests
            assert asked.path == f"127.0.0.1:{server.port}"
            assert asked.fields["proxy-authorization"] == "Basic bWU6c2VjcmV0"
            assert "authorization" not in asked.fields, "the token is not the proxy's business"
            await client.close()

    run(main())


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        pytest.param(b"HTTP/1.1 407 Auth\r\n\r\n", "refused a tunnel to 10.0.0.1:6443: 407", id="refused"),
        pytest.param(b"hello\r\n\r\n", "not an HTTP/1.1 answer", id="no proxy at all"),
        pytest.param(b"", "without an answer", id="hangs up"),
    ],
)
def test_a_proxy_that_will_not(answer: bytes, text: str) -> None:
    async def refuses(talk: Talk) -> None:
        await talk.request()
        await talk.say(answer)

    async def main() -> None:
        async with serving(refuses) as proxy:
            client = a_client(6443, host="10.0.0.1", proxy=Proxy("127.0.0.1", proxy.port))
            with pytest.raises(Unreachable, match=rf"proxy 127.0.0.1:{proxy.port}: .*{text}"):
                await client.send(Call("POST", "/x", b"{}"))

    run(main())


ADDRESS = ServerAddress("api.corp.example", 6443)


@pytest.mark.parametrize(
    ("address", "env", "proxied"),
    [
        pytest.param(ADDRESS, {"HTTPS_PROXY": "http://p:1"}, True, id="from the environment"),
        pytest.param(ADDRESS, {"https_proxy": "p:1"}, True, id="without a scheme"),
        pytest.param(ADDRESS, {"HTTP_PROXY": "http://p:1"}, False, id="for http only"),
        pytest.param(ServerAddress("a.b", 80, False), {"HTTP_PROXY": "http://p:1"}, True, id="http"),
        pytest.param(ADDRESS, {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "corp.example"}, False, id="by its domain"),
        pytest.param(ADDRESS, {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "x, .corp.example"}, False, id="with a dot"),
        pytest.param(ADDRESS, {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "orp.example"}, True, id="half a name"),
        pytest.param(ADDRESS, {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "*"}, False, id="none at all"),
        pytest.param(ADDRESS, {"HTTPS_PROXY": "http://p:1", "no_proxy": "api.corp.example:1"}, True, id="other port"),
        pytest.param(
            ServerAddress("10.2.3.4", 1), {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "10.0.0.0/8"}, False, id="network"
        ),
        pytest.param(
            ServerAddress("10.2.3.4", 1), {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "x/y"}, True, id="no network"
        ),
        pytest.param(ServerAddress("127.0.0.1", 1), {"HTTPS_PROXY": "http://p:1"}, False, id="this machine"),
        pytest.param(ServerAddress("localhost", 1), {"HTTPS_PROXY": "http://p:1"}, False, id="this machine by name"),
    ],
)
def test_which_proxy(address: ServerAddress, env: dict[str, str], proxied: bool) -> None:
    assert proxy_for_server(address, "", "", env) == (Proxy("p", 1) if proxied else None)


def test_the_proxy_of_the_kubeconfig_wins() -> None:
    found = proxy_for_server(ServerAddress("127.0.0.1", 1), "https://me:a%40b@q", "x", {"HTTPS_PROXY": "http://p:1"})
    assert found == Proxy("q", 443, True, "me:a@b")


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("socks5://x:1", "at: a proxy must be http:// or https://, not socks5"),
        ("x:1", "at: "),
        ("http://", "at: names no host"),
        ("http://u:secret@h:port", "at: not a URL"),
    ],
)
def test_what_is_no_proxy(url: str, text: str) -> None:
    with pytest.raises(ClientConfigError, match=text) as caught:
        proxy_for_server(ADDRESS, url, "at", {})
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("https://h:6443", ServerAddress("h", 6443)),
        ("https://h", ServerAddress("h", 443)),
        ("http://h/", ServerAddress("h", 80, False)),
        ("h:8080", ServerAddress("h", 8080)),
        ("https://h/k8s/c-1/", ServerAddress("h", 443, prefix="/k8s/c-1")),
        ("https://[::1]:6443", ServerAddress("::1", 6443)),
    ],
)
def test_the_address_of_a_server(url: str, address: ServerAddress) -> None:
    assert parse_server_url(url, "x") == address


def test_an_address_is_written_as_a_url() -> None:
    assert str(ServerAddress("::1", 6443, prefix="/p")) == "https://[::1]:6443/p"


@pytest.mark.parametrize(
    "url", ["", "ftp://h", "https://", "https://h:x", "https://h:99999", "https://u@h", "https://h?x", "https://h/a b"]
)
def test_what_is_no_server(url: str) -> None:
    with pytest.raises(ClientConfigError, match=r"^clusters: "):
        parse_server_url(url, "clusters")
