"""A certificate of our own by the `cryptography` package, where somebody installed it and there is no openssl program.

The package is not one of ours, so it is found by name when it is needed and nothing here knows its types.
"""

from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import Any

from kubenexus.base.clock import WallClock


def by_package(host: str, days: int) -> bytes:
    """Key and certificate as PEM, one after the other."""
    x509: Any = import_module("cryptography.x509")
    hashes: Any = import_module("cryptography.hazmat.primitives.hashes")
    forms: Any = import_module("cryptography.hazmat.primitives.serialization")
    ec: Any = import_module("cryptography.hazmat.primitives.asymmetric.ec")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, host[:60])])
    now = datetime.fromtimestamp(WallClock().now(), UTC)  # others judge it by theirs
    names = x509.SubjectAlternativeName([x509.DNSName(host), x509.DNSName("localhost")])
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number()).add_extension(names, critical=False)
    builder = builder.not_valid_before(now - timedelta(hours=1)).not_valid_after(now + timedelta(days=days))
    certificate = builder.sign(key, hashes.SHA256())
    private = key.private_bytes(forms.Encoding.PEM, forms.PrivateFormat.PKCS8, forms.NoEncryption())
    return bytes(private + certificate.public_bytes(forms.Encoding.PEM))
