"""Old values of trial writes, so that a rollback restores the exact bytes."""

from collections.abc import Callable, MutableMapping
from typing import Any

import numpy as np

_MISSING: Any = object()
_CALL: Any = object()


class UndoLog:
    """Old values of the cells written so far, newest last. No inverse arithmetic: 'add, then subtract' can drift."""

    __slots__ = ("_old",)

    def __init__(self) -> None:
        self._old: list[tuple[Any, Any, Any]] = []

    def cell(self, array: "np.ndarray[Any, Any]", index: tuple[int, ...] | int) -> None:
        """Saves an array's cell before it is written."""
        self._old.append((array, index, array[index]))

    def entry(self, mapping: MutableMapping[Any, Any], key: Any) -> None:
        """Saves a mapping's entry, or that there is none."""
        self._old.append((mapping, key, mapping.get(key, _MISSING)))

    def call(self, back: Callable[[], None]) -> None:
        """Saves a function to call on rollback, for what is no cell: a pod's slot in the pods' columns."""
        self._old.append((back, None, _CALL))

    def restore(self) -> None:
        for target, index, old in reversed(self._old):
            if old is _CALL:
                target()
            elif old is _MISSING:
                target.pop(index, None)
            else:
                target[index] = old
        self._old.clear()
