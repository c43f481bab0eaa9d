"""The two formats of a log line: klog's text and component-base's JSON.

    I1116 01:24:17.123456   12345 scheduling_loop.py:12] "Bound pod" pod="shop/web-0" node="n1" cycle="17"
    {"ts":1794792257123.456,"caller":"app/scheduling_loop.py:12","msg":"Bound
    pod","v":0,"pod":{"name":"web-0","namespace":"shop"}}

No value can break a line: texts are quoted, long ones are shortened, and texts of several lines are indented.
"""

import logging
from datetime import datetime
from pathlib import PurePath
from typing import Any, Final

import msgspec

MAX_VALUE_LENGTH: Final = 8192  # characters of one value
_LETTERS: Final = {logging.WARNING: "W", logging.ERROR: "E", logging.CRITICAL: "F"}


class ObjectRef(msgspec.Struct, frozen=True, gc=False):
    """An object by namespace and name, as `klog.KRef`."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class KlogFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        when = datetime.fromtimestamp(record.created).strftime("%m%d %H:%M:%S.%f")
        letter = _LETTERS.get(record.levelno, "I")
        head = f"{letter}{when} {record.process or 0:>7} {record.filename}:{record.lineno}] "
        said = [quote(_tame(record.getMessage())), *(f"{key}={text_of(value)}" for key, value in _keys(record).items())]
        return head + " ".join(said)


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {"ts": round(record.created * 1000, 3)}
        line["caller"] = _short(record)
        line["msg"] = _tame(record.getMessage())
        if record.levelno < logging.ERROR:
            line["v"] = max(0, logging.INFO - record.levelno)
        line |= {key: to_json(value) for key, value in _keys(record).items()}
        return msgspec.json.encode(line, enc_hook=str).decode()


def text_of(value: Any) -> str:
    """Returns a value as the text format writes it after its key."""
    named = _named(value)
    match to_json(value) if named is None else _tame(str(named)):
        case bool(flag):
            return str(flag).lower()
        case int() | float() as number:
            return repr(number)
        case str(text):
            return quote(text)
        case other:
            return msgspec.json.encode(other, enc_hook=str).decode()


def to_json(value: Any) -> Any:
    """Returns a value for the JSON format: Kubernetes objects by name, errors and unknown types by their text."""
    named = _named(value)
    if named is not None:
        return {"name": named.name} | ({"namespace": named.namespace} if named.namespace else {})
    if isinstance(value, str):
        return _tame(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, list | tuple | set | frozenset):
        return [to_json(each) for each in value]
    if isinstance(value, dict):
        return {str(key): to_json(each) for key, each in value.items()}
    return _tame(str(value))


def quote(text: str) -> str:
    """Quotes as Go does. A text of several lines is indented, as klog does it, to stay readable."""
    if "\n" in text:
        return "<\n\t" + "\n\t".join(msgspec.json.encode(line).decode()[1:-1] for line in text.split("\n")) + "\n >"
    return msgspec.json.encode(text).decode()


def _named(value: Any) -> ObjectRef | None:
    if isinstance(value, ObjectRef):
        return value
    metadata = getattr(value, "metadata", None)
    return None if metadata is None else ObjectRef(getattr(metadata, "namespace", ""), getattr(metadata, "name", ""))


def _keys(record: logging.LogRecord) -> dict[str, Any]:
    keys: dict[str, Any] = dict(getattr(record, "keys", {}))
    if record.exc_info and record.exc_info[1] is not None:
        keys.setdefault("err", str(record.exc_info[1]))
        keys["stacktrace"] = logging.Formatter().formatException(record.exc_info)
    return keys


def _short(record: logging.LogRecord) -> str:
    """Returns the file with its folder, as zap shortens it: `app/scheduling_loop.py:12`."""
    return f"{'/'.join(PurePath(record.pathname).parts[-2:])}:{record.lineno}"


def _tame(text: str) -> str:
    """Shortens a long text and replaces lone surrogates, which cannot be encoded."""
    whole = text if len(text) <= MAX_VALUE_LENGTH else f"{text[:MAX_VALUE_LENGTH]}... ({len(text)} characters)"
    return whole if whole.isascii() else whole.encode(errors="replace").decode()
