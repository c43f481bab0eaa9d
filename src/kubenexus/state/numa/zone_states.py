"""The states of single NUMA nodes: what one has, and what is free of it. Equal ones share a code.

Equal nodes have far fewer states of NUMA nodes than there are nodes. What a pod class gets on one is therefore computed
once for each state (`plugins.numa.state_memo`), and looked up by code for each row.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kubenexus.api.numa.machine import BEST_EFFORT, NONE, RESTRICTED, Kubelet
from kubenexus.base.arrays import grow

NO_ZONE: Final = 0  # the code of a NUMA node that a row does not have
_SPARE: Final = 4096  # states that are kept though no row has them any more
# The fields of `ZoneState` that are numbers, in its order.
_NUMBERS: Final = (
    *("kind", "id", "apart", "all_cpus", "usable_cpus", "bandwidth", "free_cpus", "group", "own_group", "blocks"),
)
_FLAGS: Final = ("own_group", "aligned", "widens", "static_cpus", "static_memory")

Amounts = NDArray[np.int64]
Listed = tuple[tuple[str, int, int], ...]  # resource, in all, free


class ZoneState(NamedTuple):
    """One NUMA node. `kind` is the number of its kubelet's configuration, `apart` the sum of the distances to the
    others, `bandwidth` that of its memory in MB/s (0: not known). `group` is the set it shares memory blocks with,
    `own_group`: that is itself alone. `memory` and `devices` list only what its node reports by NUMA node."""

    kind: int
    id: int
    apart: int
    all_cpus: int
    usable_cpus: int
    bandwidth: int
    free_cpus: int
    group: int
    own_group: bool
    blocks: int
    memory: Listed
    devices: Listed


_NOTHING: Final = ZoneState(-1, -1, 0, 0, 0, 0, 0, 0, False, 0, (), ())


class ZoneStates:
    """All states that rows have, and some that they had. `epoch` changes when codes get another meaning."""

    def __init__(self) -> None:
        self.epoch = 0
        self.states: list[ZoneState] = [_NOTHING]
        self.kinds: list[tuple[int, Kubelet]] = []
        self._codes: dict[ZoneState, int] = {}
        self._capacity = 64
        self._fields: dict[str, NDArray[Any]] = {
            **{name: np.zeros(self._capacity, np.int64) for name in (*_NUMBERS, "others")},
            **{name: np.zeros(self._capacity, np.bool_) for name in _FLAGS},
        }
        self._amounts: dict[tuple[str, str], tuple[Amounts, Amounts, NDArray[np.bool_]]] = {}
        self._written = 0
        self._derived: dict[str, tuple[NDArray[Any], int]] = {}  # by name: the column, and how many states it has

    def __len__(self) -> int:
        return len(self.states)

    def code(self, state: ZoneState) -> int:
        """Returns the code of a state, a new one if no row had it before."""
        code = self._codes.get(state)
        if code is None:
            code = self._codes[state] = len(self.states)
            self.states.append(state)
        return code

    def kind(self, zones: int, kubelet: Kubelet) -> int:
        """Returns the number of a configuration: so many NUMA nodes, and a kubelet."""
        if (zones, kubelet) not in self.kinds:
            self.kinds.append((zones, kubelet))
        return self.kinds.index((zones, kubelet))

    def field(self, name: str, codes: Any) -> Any:
        """Returns a property of some states, given their codes or a slice: a field of `ZoneState`, or of the kubelet:
        `aligned` (its Topology Manager may refuse a pod), `widens` (it takes several NUMA nodes if one is too small),
        `static_cpus`, `static_memory`; `others` is how many more
        NUMA nodes the node has. The caller must not write into it."""
        self._write()
        return self._fields[name][codes]

    def amounts(self, what: str, resource: str, codes: Any) -> tuple[Any, Any, Any]:
        """Returns for some states how much of a resource there is, how much is free, and whether that is reported.
        `what` is `memory` or `devices`."""
        self._write()
        columns = self._amounts.get((what, resource))
        if columns is None:
            nothing = np.zeros_like(self._fields["kind"][codes])
            return nothing, nothing, nothing > 0
        return columns[0][codes], columns[1][codes], columns[2][codes]

    def derived(self, name: str, codes: Any, compute: Callable[["ZoneStates", Any], Any]) -> Any:
        """Returns a column that follows from the fields of the states alone, for some of them. It is computed once for
        each state, by `compute` for a slice of all; all pod classes share it."""
        column, known = self._derived.get(name, (None, 0))
        if known < len(self.states):
            fresh = compute(self, slice(known, len(self.states)))
            if column is None or len(column) < len(self.states):
                larger = np.zeros(max(2 * known, len(self.states)), fresh.dtype)
                if column is not None:
                    larger[:known] = column[:known]
                column = larger
            column[known : len(self.states)] = fresh
            self._derived[name] = column, len(self.states)
        assert column is not None
        return column[codes]

    def resources(self, what: str) -> list[str]:
        """Returns the resources that any state lists."""
        self._write()
        return [resource for of, resource in self._amounts if of == what]

    def is_crowded(self, in_use: int) -> bool:
        """Returns whether many states are kept that no row can have: `in_use` is the number of all NUMA nodes."""
        return len(self.states) > 2 * in_use + _SPARE

    def keep(self, codes: Any) -> Any:
        """Forgets all states but these. Returns the new code of each old one."""
        used = np.zeros(len(self.states), np.bool_)
        used[codes.ravel()] = True
        used[NO_ZONE] = False
        states = [self.states[code] for code in np.flatnonzero(used).tolist()]
        moved = np.zeros(len(self.states), np.intp)
        moved[used] = np.arange(1, len(states) + 1)
        self.states = [_NOTHING, *states]
        self._codes = {state: code for code, state in enumerate(self.states) if code != NO_ZONE}
        self._written = 0
        self.epoch += 1
        self._amounts.clear()
        self._derived.clear()
        return moved

    def _write(self) -> None:
        """Writes the states into the columns that came since."""
        if self._written == len(self.states):
            return
        first, size = self._written, len(self.states)
        fresh = self.states[first:]
        if size > self._capacity:
            self._capacity = max(2 * self._capacity, size)
            self._fields = {name: grow(column, self._capacity) for name, column in self._fields.items()}
            self._amounts = {key: tuple(grow(each, self._capacity) for each in of) for key, of in self._amounts.items()}  # type: ignore[misc]
        for position, name in enumerate(_NUMBERS):
            self._fields[name][first:size] = [state[position] for state in fresh]
        kinds = [self.kinds[state.kind] if state.kind >= 0 else (1, Kubelet()) for state in fresh]
        aligned = [kubelet.policy not in (NONE, BEST_EFFORT) for _, kubelet in kinds]
        self._fields["aligned"][first:size] = aligned
        self._fields["widens"][first:size] = [kubelet.policy == RESTRICTED for _, kubelet in kinds]
        self._fields["static_cpus"][first:size] = [kubelet.static_cpus for _, kubelet in kinds]
        self._fields["static_memory"][first:size] = [kubelet.static_memory for _, kubelet in kinds]
        self._fields["others"][first:size] = [zones - 1 for zones, _ in kinds]
        for code, state in enumerate(fresh, first):
            for what, listed in (("memory", state.memory), ("devices", state.devices)):
                for resource, total, free in listed:
                    columns = self._columns(what, resource)
                    columns[0][code], columns[1][code], columns[2][code] = total, free, True
        self._written = size

    def _columns(self, what: str, resource: str) -> tuple[Amounts, Amounts, NDArray[np.bool_]]:
        columns = self._amounts.get((what, resource))
        if columns is None:
            total, free = np.zeros((2, self._capacity), np.int64)
            columns = self._amounts[what, resource] = total, free, np.zeros(self._capacity, np.bool_)
        return columns
