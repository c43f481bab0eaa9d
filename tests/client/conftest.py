"""The certificates of these tests, made once: an authority, a server, a client, expired ones."""

import ssl
from pathlib import Path

import pytest

from tests import certificates as made


class Papers(made.CertificateFiles):
    """Where each certificate lies."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.authority = self.self_signed("ca")
        self.stranger = self.self_signed("stranger")
        self.server = self.issue("server", "subjectAltName=DNS:localhost,DNS:api.example,IP:127.0.0.1", by="ca")
        self.expired_server = self.issue("old-server", "subjectAltName=IP:127.0.0.1", by="ca", days=-1)
        self.client = self.issue("client", "extendedKeyUsage=clientAuth", by="ca")
        self.expired_client = self.issue("old-client", "extendedKeyUsage=clientAuth", by="ca", days=-1)

    def serving(self, certificate: Path | None = None, *, clients: bool = False) -> ssl.SSLContext:
        """The context of a server; `clients`: they have to show a certificate."""
        certificate = certificate or self.server
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, self.key(certificate))
        if clients:
            context.load_verify_locations(self.authority)
            context.verify_mode = ssl.CERT_REQUIRED
        return context


@pytest.fixture(scope="session")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Papers:
    return Papers(tmp_path_factory.mktemp("papers"))
