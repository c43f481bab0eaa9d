"""Moments as objects have them (RFC 3339), and as we count: seconds since 1970."""

from datetime import UTC, datetime
from typing import TypeVar

Otherwise = TypeVar("Otherwise")


def parse_timestamp(text: str, otherwise: Otherwise) -> float | Otherwise:
    """`2026-11-16T01:24:17Z`, with or without a fraction, in whatever zone it says; `otherwise` for all else. Never
    raises: anybody may have written it. Without a zone it is no moment, and would be another one on each machine."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return otherwise
    return otherwise if found.tzinfo is None else found.timestamp()


def format_time(when: float) -> str:
    """`2026-11-16T01:24:17Z`: a `metav1.Time`, in conditions."""
    return _text(when, "seconds")


def format_micro_time(when: float) -> str:
    """`2026-11-16T01:24:17.123456Z`: a `metav1.MicroTime`, in events and leases."""
    return _text(when, "microseconds")


def _text(when: float, precision: str) -> str:
    return datetime.fromtimestamp(when, UTC).isoformat(timespec=precision).replace("+00:00", "Z")
