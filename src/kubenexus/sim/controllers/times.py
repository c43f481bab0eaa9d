"""Moments as they stand in objects, read back."""

from datetime import datetime


def moment(text: str) -> float:
    """Seconds since 1970; the beginning of time for what is no moment."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return 0.0
