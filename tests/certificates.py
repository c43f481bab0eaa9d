"""Certificates for tests, made by the `openssl` program: without it these tests fail and say so, they do not skip."""

import subprocess
from pathlib import Path

import pytest

_NEW_KEY = ("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


class CertificateFiles:
    """A folder of them: NAME.pem beside NAME.key."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def key(self, certificate: Path) -> Path:
        return certificate.with_suffix(".key")

    def self_signed(self, name: str) -> Path:
        """Also an authority: one that signs itself may sign others."""
        self._openssl(*_NEW_KEY, "-x509", "-keyout", f"{name}.key", "-out", f"{name}.pem", "-subj", f"/CN={name}")
        return self.folder / f"{name}.pem"

    def issue(self, name: str, extension: str, *, by: str, days: int = 2) -> Path:
        """Signed by the one called `by`."""
        (self.folder / f"{name}.ext").write_text(extension)
        self._openssl(*_NEW_KEY, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/O=system:test/CN={name}")
        signed = ("x509", "-req", "-in", f"{name}.csr", "-CA", f"{by}.pem", "-CAkey", f"{by}.key", "-CAcreateserial")
        self._openssl(*signed, "-days", str(days), "-extfile", f"{name}.ext", "-out", f"{name}.pem")
        return self.folder / f"{name}.pem"

    def _openssl(self, *arguments: str) -> None:
        try:
            subprocess.run(["openssl", *arguments], cwd=self.folder, check=True, capture_output=True)
        except FileNotFoundError:
            pytest.fail("these tests need the openssl program on the PATH: it makes their certificates", pytrace=False)
