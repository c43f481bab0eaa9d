"""Finds the identity and the faulty field of an object that cannot be decoded."""

import json
import math
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final

import msgspec

from kubenexus.api.json_outline import JsonOutline, Span

_IDENTITY: Final = {
    "metadata": ("namespace", "name", "uid", "resourceVersion"),
    "spec": ("nodeName",),
    "status": ("phase",),
}


def decode_leniently(raw: bytes) -> Any:
    """Decodes JSON with NaN, huge numbers and broken UTF-8. Raises ValueError or RecursionError if that fails, too."""
    return json.loads(raw.decode("utf-8", "replace"), parse_int=_int)


def find_identity(raw: bytes) -> dict[str, dict[str, Any]]:
    """Returns the texts of an object's identity, each from its exact place."""
    outline = JsonOutline(raw)
    found: dict[str, dict[str, Any]] = {}
    for part, span in outline.members(1, outline.top):
        if part in _IDENTITY:
            found[part] = dict(_texts(raw, outline.members(2, span), _IDENTITY[part]))
    return found


def _texts(raw: bytes, members: Iterable[tuple[str, Span]], wanted: tuple[str, ...]) -> Iterable[tuple[str, str]]:
    for name, span in members:
        if name in wanted:
            with suppress(msgspec.DecodeError, UnicodeDecodeError):
                yield name, msgspec.json.decode(raw[span[0] : span[1]], type=str)


def find_non_finite(data: Any, path: str = "") -> str:
    """Returns the path of a number that is not finite, or ""."""
    if isinstance(data, dict):
        parts = [(f"{path}.{key}" if path else str(key), held) for key, held in data.items()]
    elif isinstance(data, list):
        parts = [(f"{path}[{i}]", held) for i, held in enumerate(data)]
    else:
        return path if isinstance(data, float) and not math.isfinite(data) else ""
    return next((found for where, held in parts if (found := find_non_finite(held, where))), "")


def _int(digits: str) -> int | float:
    return int(digits) if len(digits) < 400 else float("inf")
