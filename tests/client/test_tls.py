"""Whom we trust and what we show: verified unless told otherwise, and every refusal in words."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from kubenexus.base.errors import KubeNexusError
from kubenexus.client.calls import Call, Unreachable
from kubenexus.client.certificate_expiry import certificate_expiry
from kubenexus.client.credentials import ClientConfigError
from kubenexus.client.tls import PemSource, TlsContextFactory
from tests.client.conftest import Papers
from tests.client.server import Talk, a_client, answering, both_loops, http, run, serving

GET = Call("GET", "/x")


def trust(papers: Papers, authority: Path | None = None, client: Path | None = None) -> TlsContextFactory:
    shown = (PemSource("cert", path=str(client)), PemSource("key", path=str(papers.key(client)))) if client else None
    return TlsContextFactory(PemSource("ca", path=str(authority or papers.authority)), shown)


async def call(papers: Papers, context, trusted: TlsContextFactory, **settings) -> bytes:
    async with serving(answering(then=http(b"hello")), tls=context) as served:
        client = a_client(served.port, trust=trusted, **settings)
        try:
            return await client.send(GET)
        finally:
            await client.close()


@both_loops
def test_a_server_whose_authority_we_know(run, papers: Papers) -> None:
    assert run(call(papers, papers.serving(), trust(papers))) == b"hello"


@both_loops
@pytest.mark.parametrize(
    ("server", "authority", "settings", "text"),
    [
        pytest.param("server", "stranger", {}, "certificate is not trusted: .*issuer", id="a strange authority"),
        pytest.param("expired_server", "authority", {}, "certificate has expired", id="expired"),
        pytest.param("server", "authority", {"server_name": "other"}, "Hostname mismatch", id="another name"),
    ],
)
def test_a_server_we_do_not_trust(run, papers: Papers, server: str, authority: str, settings, text: str) -> None:
    context = papers.serving(getattr(papers, server))
    with pytest.raises(Unreachable, match=rf"https://127.0.0.1:\d+: .*{text}"):
        run(call(papers, context, trust(papers, getattr(papers, authority)), **settings))


@both_loops
def test_a_server_that_speaks_no_tls(run, papers: Papers) -> None:
    async def plain(talk: Talk) -> None:
        await talk.reader.read(1)
        await talk.say(b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n")

    async def main() -> None:
        async with serving(plain) as served:
            with pytest.raises(
                Unreachable, match=r"https://127.0.0.1:.*: TLS failed: .*; the port seems to speak plain HTTP"
            ):
                await a_client(served.port, trust=trust(papers)).send(GET)

    run(main())


@both_loops
def test_the_name_to_expect_may_be_given(run, papers: Papers) -> None:
    assert run(call(papers, papers.serving(), trust(papers), server_name="api.example")) == b"hello"


def test_not_to_verify_has_to_be_said(papers: Papers) -> None:
    assert run(call(papers, papers.serving(papers.expired_server), TlsContextFactory(insecure=True))) == b"hello"
    with pytest.raises(Unreachable, match="not trusted"):
        run(call(papers, papers.serving(), TlsContextFactory()))


@both_loops
def test_a_client_certificate(run, papers: Papers) -> None:
    context = papers.serving(clients=True)
    assert run(call(papers, context, trust(papers, client=papers.client))) == b"hello"
    with pytest.raises(KubeNexusError):
        run(call(papers, context, trust(papers)))


def test_certificates_and_keys_as_data_leave_no_file_behind(papers: Papers, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    seen: list[int] = []
    real = os.unlink

    def unlink(path: str) -> None:
        seen.append(os.stat(path).st_mode & 0o777)
        real(path)

    monkeypatch.setattr(os, "unlink", unlink)
    pair = [PemSource("m", data=path.read_bytes()) for path in (papers.client, papers.key(papers.client))]
    trusted = TlsContextFactory(PemSource("ca", data=papers.authority.read_bytes()), (pair[0], pair[1]))
    assert run(call(papers, papers.serving(clients=True), trusted)) == b"hello"
    assert seen == [0o600]
    assert list(tmp_path.iterdir()) == []


def test_a_renewed_certificate_is_used_for_the_next_connection(papers: Papers, tmp_path: Path) -> None:
    shown, key = tmp_path / "c.pem", tmp_path / "k.pem"
    shutil.copy(papers.expired_client, shown)
    shutil.copy(papers.key(papers.expired_client), key)
    trusted = TlsContextFactory(
        PemSource("ca", path=str(papers.authority)), (PemSource("c", path=str(shown)), PemSource("k", path=str(key)))
    )
    first = trusted.context()
    assert trusted.context() is first
    shutil.copy(papers.client, shown)
    shutil.copy(papers.key(papers.client), key)
    assert trusted.context() is not first
    assert run(call(papers, papers.serving(clients=True), trusted)) == b"hello"


@pytest.mark.parametrize(
    ("certificate", "key", "text"),
    [
        pytest.param("client.pem", "server.key", "cert: the key does not belong to it", id="another key"),
        pytest.param("client.key", "client.key", "cert: no certificate and key in PEM form", id="no certificate"),
        pytest.param("client.pem", "client.ext", "cert: no certificate and key in PEM form", id="no key"),
        pytest.param("none.pem", "client.key", "cert: .*none.pem: No such file", id="no file"),
        pytest.param(
            "old-client.pem", "old-client.key", r"cert: the certificate expired at 20..-..-..T..:..:..Z", id="old"
        ),
    ],
)
def test_what_we_show_is_checked_before_the_first_call(papers: Papers, certificate: str, key: str, text: str) -> None:
    folder = papers.folder
    pair = PemSource("cert", path=str(folder / certificate)), PemSource("key", path=str(folder / key))
    now = papers.client.stat().st_mtime
    with pytest.raises(ClientConfigError, match=text):
        TlsContextFactory(None, pair).check(now)


def test_files_that_cannot_be_read_for_a_moment_change_nothing(papers: Papers, tmp_path: Path) -> None:
    authority = tmp_path / "ca.crt"
    shutil.copy(papers.authority, authority)
    trusted = trust(papers, authority)
    first = trusted.context()
    authority.write_text("half a certif")
    assert trusted.context() is first
    authority.unlink()
    assert trusted.context() is first
    shutil.copy(papers.authority, authority)
    assert trusted.context() is not first


def test_files_that_never_could_be_read_make_the_server_unreachable(papers: Papers, tmp_path: Path) -> None:
    with pytest.raises(Unreachable, match=r"ca: .*gone: No such file"):
        run(call(papers, papers.serving(), trust(papers, tmp_path / "gone")))


def test_an_authority_that_is_none_is_told(papers: Papers) -> None:
    with pytest.raises(ClientConfigError, match="ca: no certificate in PEM form"):
        TlsContextFactory(PemSource("ca", data=b"hello")).check(0.0)


@pytest.mark.parametrize("pem", [b"", b"\xff", b"-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----"])
def test_the_end_of_what_is_no_certificate_is_not_known(pem: bytes) -> None:
    assert certificate_expiry(pem) is None


def test_the_end_of_a_certificate(papers: Papers) -> None:
    until, made = certificate_expiry(papers.client.read_bytes()), papers.client.stat().st_mtime
    assert until is not None
    assert abs(until.timestamp() - made - 2 * 86400) < 60
    half = papers.client.read_bytes().splitlines()
    assert certificate_expiry(b"\n".join([*half[:3], half[-1]])) is None
