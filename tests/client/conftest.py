"""Certificates for the tests, made once by the `openssl` program: an authority, a server, a client, expired ones."""

import ssl
import subprocess
from pathlib import Path

import pytest


class Papers:
    """Where each certificate and key lies."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = self._authority("ca")
        self.stranger = self._authority("stranger")
        self.server = self._issue("server", "subjectAltName=DNS:localhost,DNS:api.example,IP:127.0.0.1")
        self.expired_server = self._issue("old-server", "subjectAltName=IP:127.0.0.1", days=-1)
        self.client = self._issue("client", "extendedKeyUsage=clientAuth")
        self.expired_client = self._issue("old-client", "extendedKeyUsage=clientAuth", days=-1)

    def key(self, certificate: Path) -> Path:
        return certificate.with_suffix(".key")

    def serving(self, certificate: Path | None = None, *, clients: bool = False) -> ssl.SSLContext:
        """The context of a server; `clients`: they have to show a certificate."""
        certificate = certificate or self.server
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, self.key(certificate))
        if clients:
            context.load_verify_locations(self.authority)
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def _authority(self, name: str) -> Path:
        self._openssl(*_NEW_KEY, "-x509", "-keyout", f"{name}.key", "-out", f"{name}.pem", "-subj", f"/CN={name}")
        return self.folder / f"{name}.pem"

    def _issue(self, name: str, extension: str, days: int = 2) -> Path:
        (self.folder / f"{name}.ext").write_text(extension)
        self._openssl(*_NEW_KEY, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/O=system:test/CN={name}")
        signed = ["x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial"]
        self._openssl(*signed, "-days", str(days), "-extfile", f"{name}.ext", "-out", f"{name}.pem")
        return self.folder / f"{name}.pem"

    def _openssl(self, *arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=self.folder, check=True, capture_output=True)


_NEW_KEY = ("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


@pytest.fixture(scope="session")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Papers:
    return Papers(tmp_path_factory.mktemp("papers"))
