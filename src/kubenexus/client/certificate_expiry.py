"""Reads until when a certificate is valid, which `ssl` does not return for a client's own certificate."""

import datetime as dt
import ssl

_SEQUENCE, _UTC_TIME, _VERSION = 0x30, 0x17, 0xA0


def certificate_expiry(pem: bytes) -> dt.datetime | None:
    """Returns when the first certificate in a PEM text expires; None if it cannot be read. `ssl` reports that."""
    try:
        text = pem.decode("ascii")
        start, mark = text.index("-----BEGIN CERTIFICATE-----"), "-----END CERTIFICATE-----"
        der = ssl.PEM_cert_to_DER_cert(text[start : text.index(mark, start) + len(mark)] + "\n")
        return _not_after(der)
    except (ValueError, IndexError):
        return None


def _not_after(der: bytes) -> dt.datetime:
    """Reads Certificate > tbsCertificate > [version], serial, algorithm, issuer, validity > notBefore, notAfter."""
    _, certificate, _ = _element(der)
    _, signed, _ = _element(certificate)
    tag, _, rest = _element(signed)
    for _ in range(3 if tag == _VERSION else 2):
        _, _, rest = _element(rest)
    tag, validity, _ = _element(rest)
    if tag != _SEQUENCE:
        raise ValueError("no validity")
    _, _, rest = _element(validity)
    tag, value, _ = _element(rest)
    form = "%y%m%d%H%M%SZ" if tag == _UTC_TIME else "%Y%m%d%H%M%SZ"
    return dt.datetime.strptime(value.decode("ascii"), form).replace(tzinfo=dt.UTC)


def _element(data: bytes) -> tuple[int, bytes, bytes]:
    """Returns the first element of some DER: its tag, its content, and the bytes after it."""
    tag, length, at = data[0], data[1], 2
    if length & 0x80:
        size = length & 0x7F
        length, at = int.from_bytes(data[2 : 2 + size]), 2 + size
    if at + length > len(data):
        raise ValueError("cut off")
    return tag, data[at : at + length], data[at + length :]
