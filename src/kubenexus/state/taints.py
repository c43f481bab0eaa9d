"""Taints as codes. Nodes share a few distinct taint sets, so tolerations are checked once a set, not once a node."""

import numpy as np

from kubenexus.api.core import Taint
from kubenexus.base.arrays import grow
from kubenexus.state.labels import CodeColumn

TaintSet = tuple[Taint, ...]
UNTAINTED = 0


class TaintColumn:
    """`codes[n]` is the index in `sets` of row n's taints; code 0 is the empty set."""

    def __init__(self, capacity: int) -> None:
        self.codes: CodeColumn = np.zeros(capacity, np.int32)
        self.sets: list[TaintSet] = [()]
        self._code_of: dict[TaintSet, int] = {(): UNTAINTED}
        self._users: list[int] = [0]
        self._free: list[int] = []

    def grow(self, capacity: int) -> None:
        self.codes = grow(self.codes, capacity)

    @property
    def any(self) -> bool:
        """Whether any node is tainted. In many clusters none is, and plugins skip the check."""
        return len(self._code_of) > 1

    @property
    def distinct(self) -> int:
        """The number of distinct taint sets, the empty one included."""
        return len(self._code_of)

    def set(self, row: int, taints: TaintSet) -> None:
        self._leave(int(self.codes[row]))
        self.codes[row] = self._enter(taints)

    def _enter(self, taints: TaintSet) -> int:
        code = self._code_of.get(taints)
        if code is None:
            code = self._code_of[taints] = self._new(taints)
        self._users[code] += 1
        return code

    def _new(self, taints: TaintSet) -> int:
        if self._free:
            code = self._free.pop()
            self.sets[code], self._users[code] = taints, 0
            return code
        self.sets.append(taints)
        self._users.append(0)
        return len(self.sets) - 1

    def _leave(self, code: int) -> None:
        """Drops a node from a set. The code of a set without nodes is reused: taints with timestamps would otherwise
        grow the table forever."""
        if code == UNTAINTED:
            return
        self._users[code] -= 1
        if self._users[code] == 0:
            del self._code_of[self.sets[code]]
            self.sets[code] = ()
            self._free.append(code)
