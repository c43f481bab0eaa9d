"""What the secure port shows: made by ourselves, from files, and from other files a moment later."""

import asyncio
import shutil
import ssl
from pathlib import Path

import pytest

from kubenexus.app.http import serving_certificates
from kubenexus.app.http.serving_certificates import ReloadingCertificate, client_authority, self_signed
from kubenexus.base.errors import KubeNexusError
from tests.app.reviews import Reviews
from tests.certificates import CertificateFiles


async def shown(context: ssl.SSLContext) -> bytes:
    """The certificate that somebody who connects is shown."""

    async def bye(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = await asyncio.start_server(bye, "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting)
    found: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    server.close()
    await server.wait_closed()
    return found


def der(path: Path) -> bytes:
    return ssl.PEM_cert_to_DER_cert(path.read_text())


@pytest.mark.parametrize("host", ["node-1.example", "10.1.2.3", "::1", "Ünsinn/CN=evil"])
def test_without_files_we_make_our_own(host: str) -> None:
    async def both() -> tuple[bytes, bytes]:
        return await shown(await self_signed(host)), await shown(await self_signed(host))

    first, second = asyncio.run(both())
    assert first != second


def test_without_a_way_to_make_one_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(KubeNexusError, match="name --tls-cert-file and --tls-private-key-file"):
        asyncio.run(self_signed("host"))


def test_a_program_that_fails_is_quoted_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving_certificates, "_names", lambda _: "nonsense")
    with pytest.raises(KubeNexusError, match=r"^cannot make a certificate for the secure port: openssl: [^\n]+$"):
        asyncio.run(self_signed("host"))


def test_files_that_change_are_taken_anew_and_broken_ones_are_not(tmp_path: Path) -> None:
    papers = CertificateFiles(tmp_path)
    old, new = papers.self_signed("old"), papers.self_signed("new")
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    problems: list[str] = []

    def put(paper: Path) -> None:
        shutil.copy(paper, certificate)
        shutil.copy(papers.key(paper), key)

    async def over_time() -> None:
        put(old)
        files = ReloadingCertificate(certificate, key, on_problem=problems.append)
        assert await shown(files.context) == der(old)
        certificate.write_text("half wri")
        assert await shown(files.context) == der(old)
        assert await shown(files.context) == der(old)
        assert len(problems) == 1
        put(new)
        assert await shown(files.context) == der(new)

    asyncio.run(over_time())
    assert str(certificate) in problems[0]


@pytest.mark.parametrize("missing", ["certificate", "key"])
def test_files_that_cannot_be_used_are_one_clear_line_that_names_the_missing_one(tmp_path: Path, missing: str) -> None:
    files = {name: tmp_path / f"own.{name}" for name in ("certificate", "key")}
    for name, path in files.items():
        if name != missing:
            path.write_text("anything")
    expected = rf"cannot use the certificate .* with the key .*: the {missing} cannot be read: No such file"
    with pytest.raises(KubeNexusError, match=expected):
        ReloadingCertificate(files["certificate"], files["key"])


def test_the_clusters_authority_is_known_or_not() -> None:
    reviews = Reviews()
    assert asyncio.run(client_authority(reviews)) == ""
    reviews.configmap = {"data": {"client-ca-file": "PEM"}}
    assert asyncio.run(client_authority(reviews)) == "PEM"
    reviews.configmap = {"data": None}
    assert asyncio.run(client_authority(reviews)) == ""
