"""Converts protobuf bodies, as Go clients send them, to JSON.

The server never writes protobuf; every client that sends it also reads JSON. An object comes in an envelope that names
its kind. Fields that Go embeds have a number but no name in JSON: they are the ones missing in the schema.
"""

import base64
import functools
import struct
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from kubenexus.base.errors import Malformed
from kubenexus.sim.apiserver import schemas
from kubenexus.sim.apiserver.kinds import DATA
from kubenexus.sim.apiserver.status_errors import Json

CONTENT: Final = "application/vnd.kubernetes.protobuf"
_MAGIC: Final = b"k8s\x00"
_NEVER: Final = -62135596800  # the year 1: Go's zero time
_ZEROS: Final = (0, "", False, None)
_NUMBERS: Final = {"int32", "int64", "uint32", "uint64"}

Message = dict[str, tuple[str, str, str]]


def decode(body: bytes) -> Json:
    """Returns the object in an envelope, with its kind. Raises Malformed."""
    if not body.startswith(_MAGIC):
        raise Malformed("the body is not in the format of Kubernetes' protobuf")
    try:
        envelope = dict(_fields(body[4:]))
        named = dict(_fields(envelope.get(1, b"")))
        version, kind = named.get(1, b"").decode(), named.get(2, b"").decode()
        item = _message(_name(version, kind), envelope.get(2, b""))
    except (struct.error, IndexError, UnicodeDecodeError, KeyError, TypeError) as error:
        raise Malformed(f"cannot read the body as protobuf: {error!r}") from None
    return {"kind": kind, "apiVersion": version, **item}


@functools.cache
def _messages() -> dict[str, Message]:
    return msgspec.json.decode((DATA / "messages.json").read_bytes(), type=dict[str, Message])


def _name(version: str, kind: str) -> str:
    # Clients name the options of a delete by their own group; the schema has them once.
    known = schemas.name_of("v1" if kind == "DeleteOptions" else version, kind)
    if known is None:
        raise KeyError(f"{version} {kind}")
    return "k8s.io." + known.removeprefix("io.k8s.")


@functools.cache
def _embedded(name: str, field: str) -> bool:
    """Whether JSON writes the content of the field without the field's name."""
    schema = schemas.definitions().get("io.k8s." + name.removeprefix("k8s.io."))
    return schema is not None and field not in (schema.get("properties") or {})


# ---- the wire format -------------------------------------------------------------------------------------------------


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return number, at


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Yields field numbers and raw values: integers or bytes."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        wire = tag & 7
        if wire == 0:
            value, at = _varint(data, at)
            yield tag >> 3, value
        elif wire == 2:
            size, at = _varint(data, at)
            if at + size > len(data):
                raise IndexError("cut off")
            yield tag >> 3, data[at : at + size]
            at += size
        else:
            size = {1: 8, 5: 4}[wire]
            yield tag >> 3, data[at : at + size]
            at += size


# ---- conversion ------------------------------------------------------------------------------------------------------


def _message(name: str, data: bytes) -> Json:
    known, found = _messages()[name], dict[str, Any]()
    for number, raw in _fields(data):
        field = known.get(str(number))
        if field is not None:
            _take(name, found, field, raw)
    return found


def _take(message: str, found: Json, field: tuple[str, str, str], raw: Any) -> None:
    name, kind, how = field
    if how == "map":
        entry = dict(_fields(raw))
        found.setdefault(name, {})[entry.get(1, b"").decode()] = _value(kind, entry.get(2, b""))
    elif how == "repeated":
        found.setdefault(name, []).append(_value(kind, raw))
    elif "." in kind and kind not in _SPECIAL and _embedded(message, name):
        found.update(_message(kind, raw))
    else:
        value = _value(kind, raw)
        # Go writes every non-pointer field, even with its zero value.
        if value is not None and (how == "pointer" or value not in _ZEROS):
            found[name] = value


def _value(kind: str, raw: Any) -> Any:
    if kind == "string":
        return raw.decode()
    if kind == "bool":
        return bool(raw)
    if kind in _NUMBERS:
        return _signed(raw if isinstance(raw, int) else 0)
    if kind == "bytes":
        return base64.b64encode(raw).decode()
    if kind == "double":
        return struct.unpack("<d", raw)[0]
    special = _SPECIAL.get(kind)
    return special(dict(_fields(raw))) if special is not None else _message(kind, raw)


def _signed(number: int) -> int:
    return number - (1 << 64) if number >= 1 << 63 else number


def _time(parts: dict[int, Any], precision: str = "seconds") -> str | None:
    seconds = _signed(parts.get(1, 0))
    if not parts or seconds == _NEVER:  # an empty message is Go's zero time, too
        return None
    moment = datetime.fromtimestamp(seconds, UTC).replace(microsecond=parts.get(2, 0) // 1000)
    return moment.isoformat(timespec=precision).replace("+00:00", "Z")


def _int_or_string(parts: dict[int, Any]) -> int | str:
    return str(parts.get(3, b"").decode()) if parts.get(1) else _signed(parts.get(2, 0))


def _json(parts: dict[int, Any]) -> Any:
    return msgspec.json.decode(parts[1]) if parts.get(1) else None


_META: Final = "k8s.io.apimachinery.pkg.apis.meta.v1"
_SPECIAL: Final[dict[str, Any]] = {
    f"{_META}.Time": _time,
    f"{_META}.MicroTime": lambda parts: _time(parts, "microseconds"),
    f"{_META}.FieldsV1": _json,
    "k8s.io.apimachinery.pkg.runtime.RawExtension": _json,
    "k8s.io.apimachinery.pkg.api.resource.Quantity": lambda parts: parts.get(1, b"0").decode(),
    "k8s.io.apimachinery.pkg.util.intstr.IntOrString": _int_or_string,
}
