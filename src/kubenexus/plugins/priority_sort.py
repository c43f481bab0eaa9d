"""PrioritySort: higher priority first, then the longer wait."""

from collections.abc import Mapping
from typing import Any


class PrioritySort:
    name = "PrioritySort"
    reads = ()

    def __init__(self, args: Mapping[str, Any]) -> None:
        pass

    def sort_key(self, priority: int, since: float) -> tuple[float, ...]:
        return (-priority, since)
