"""Conversion between RFC 3339 timestamps, as objects have them, and seconds since 1970."""

from datetime import UTC, datetime
from typing import TypeVar

Otherwise = TypeVar("Otherwise")


def parse_timestamp(text: str, otherwise: Otherwise) -> float | Otherwise:
    """Parses `2026-11-16T01:24:17Z`, with or without a fraction, in any zone; returns `otherwise` for all else. Never
    raises, since any client may have written the text. A text without a zone is refused: its meaning would depend on
    the machine."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return otherwise
    return otherwise if found.tzinfo is None else found.timestamp()


def format_time(when: float) -> str:
    """Returns `2026-11-16T01:24:17Z`: a `metav1.Time`, as in conditions."""
    return _text(when, "seconds")


def format_micro_time(when: float) -> str:
    """Returns `2026-11-16T01:24:17.123456Z`: a `metav1.MicroTime`, as in events and leases."""
    return _text(when, "microseconds")


def _text(when: float, precision: str) -> str:
    return datetime.fromtimestamp(when, UTC).isoformat(timespec=precision).replace("+00:00", "Z")
