"""Moments as Kubernetes writes them: seconds in conditions, microseconds in events and leases."""

from datetime import UTC, datetime


def seconds_text(when: float) -> str:
    """`2026-11-16T01:24:17Z`: a `metav1.Time`."""
    return _text(when, "seconds")


def micros_text(when: float) -> str:
    """`2026-11-16T01:24:17.123456Z`: a `metav1.MicroTime`."""
    return _text(when, "microseconds")


def _text(when: float, precision: str) -> str:
    return datetime.fromtimestamp(when, UTC).isoformat(timespec=precision).replace("+00:00", "Z")
