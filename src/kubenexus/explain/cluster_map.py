"""A map of the cluster: nodes in their domains, and the job that holds each device. As columns, so that 5,000 nodes
with eight GPUs each are half a megabyte."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from kubenexus.api.core import Pod
from kubenexus.api.devices.device_resources import is_device_resource
from kubenexus.api.gangs.declaration import GangDeclaration
from kubenexus.api.gangs.levels import TopologyLevel
from kubenexus.app.http.api.documents import Document
from kubenexus.explain.find_pod import made_by
from kubenexus.state.devices.columns import held_devices
from kubenexus.state.ledger import Ledger
from kubenexus.state.pods import PodRecord

FREE: Final = -1
UNUSABLE: Final = -2  # a device that is not healthy
CPU_CELLS: Final = 8  # of a node without devices: each an eighth of its cpu
CORDONED: Final = 1
BLOCKED: Final = 2

Claims = Callable[[str], GangDeclaration | None]  # the gang of a pod, by the pod's key


class MapOwner(Document, frozen=True):
    """A job that holds something. `kind` is `gang`, `pod`, or the kind of the object that made its pods; "" with an
    empty name stands for all jobs that the reader may not see."""

    kind: str
    namespace: str
    name: str
    tenant: str


class ClusterMap(Document, frozen=True):
    """All nodes, by name. Each column has one entry for each node.

    `levels` are the topology levels, from the outside in; `domains` has the names of their domains, and `places` the
    index of each node's domain, -1 without one. `states`: 1 for cordoned, plus 2 for blocked. `gpus`: how many devices
    a node has. `cells` has what holds each device, for all nodes one after the other: the index of an owner, -1 if it
    is free, -2 if it cannot be used. A node without devices has eight cells, each an eighth of its cpu. `cpu` and
    `memory` are the used thousandths.
    """

    levels: tuple[str, ...]
    domains: tuple[tuple[str, ...], ...]
    owners: tuple[MapOwner, ...]
    names: tuple[str, ...]
    places: tuple[tuple[int, ...], ...]
    states: tuple[int, ...]
    gpus: tuple[int, ...]
    cells: tuple[int, ...]
    cpu: tuple[int, ...]
    memory: tuple[int, ...]
    pods: tuple[int, ...]


class MapSource(NamedTuple):
    """What a map is made of. `namespace`: the jobs of others are not named; "" for all."""

    ledger: Ledger
    pods: Mapping[str, Pod]
    claims: Claims
    levels: Sequence[TopologyLevel]
    namespace: str = ""


def cluster_map(source: MapSource) -> ClusterMap:
    """Returns the map. It costs about 35 us a node with eight devices."""
    ledger, columns = source.ledger, source.ledger.nodes
    names, owners, cells = tuple(sorted(columns.row_of)), _Owners(source), list[int]()
    rows, gpus = [columns.row_of[name] for name in names], list[int]()
    for name in names:
        held = _device_cells(ledger, name, owners)
        gpus.append(len(held))
        cells += held or _cpu_cells(ledger, name, owners)
    levels = list(source.levels[:0:-1])
    placed = [_places(ledger, rows, level) for level in levels]
    used = [(level, found) for level, found in zip(levels, placed, strict=True) if found[0]]
    return ClusterMap(
        tuple(level.name for level, _ in used),
        tuple(found[0] for _, found in used),
        tuple(owners.known),
        names,
        tuple(found[1] for _, found in used),
        tuple(
            int(columns.cordoned[row]) * CORDONED + ledger.is_blocked(name) * BLOCKED
            for name, row in zip(names, rows, strict=True)
        ),
        tuple(gpus),
        tuple(cells),
        _thousandths(ledger, rows, "cpu"),
        _thousandths(ledger, rows, "memory"),
        tuple(len(ledger.on_node(name)) for name in names),
    )


class _Owners:
    """Numbers the jobs that hold something."""

    def __init__(self, source: MapSource) -> None:
        self._source = source
        self._numbers: dict[MapOwner, int] = {}
        self._of_pod: dict[str, int] = {}

    @property
    def known(self) -> Iterable[MapOwner]:
        return self._numbers

    def number(self, record: PodRecord) -> int:
        key = record.key
        found = self._of_pod.get(key)
        if found is None:
            found = self._of_pod[key] = self._numbers.setdefault(self._owner(record, key), len(self._numbers))
        return found

    def _owner(self, record: PodRecord, key: str) -> MapOwner:
        source = self._source
        if source.namespace not in ("", record.namespace):
            return MapOwner("", "", "", "")
        pod, claim = source.pods.get(key), source.claims(key)
        tenant = "" if pod is None else source.ledger.nodes.tenants.of(pod).name
        if claim is not None:
            return MapOwner("gang", record.namespace, claim.display_name.partition("/")[2], tenant)
        if pod is None:  # capacity that is kept for a pod that is gone
            return MapOwner("hold", record.namespace, record.name, tenant)
        kind, name = made_by(pod)
        return MapOwner(kind, record.namespace, name, tenant)


def _device_cells(ledger: Ledger, name: str, owners: _Owners) -> list[int]:
    """Returns the owner of each device. Devices that pods request by number and not by name come from those left."""
    here = ledger.nodes.devices.of_row(ledger.nodes.row_of[name])
    devices = here.node.devices
    cells = [FREE if each.healthy else UNUSABLE for each in devices]
    if not cells:
        return cells
    without_names: list[tuple[int, int]] = []
    for record in sorted(ledger.on_node(name), key=_by_name):
        asked = sum(int(number) for resource, number in record.footprint.amounts if is_device_resource(resource))
        if not asked and not record.device_shares:
            continue
        owner = owners.number(record)
        for slot, _ in held_devices(record.device_shares, record.footprint.amounts, here):
            cells[slot] = owner
            asked -= 1
        without_names.append((owner, asked))
    free = (slot for slot, cell in enumerate(cells) if cell == FREE)
    for owner, number in without_names:
        for _, slot in zip(range(number), free):  # noqa: B905 - as many as there are
            cells[slot] = owner
    return cells


def _cpu_cells(ledger: Ledger, name: str, owners: _Owners) -> list[int]:
    """Returns eighths of the node's cpu by the jobs that request it, the largest first."""
    table, row = ledger.nodes.resources, ledger.nodes.row_of[name]
    offered, by_owner = int(table.alloc[table.index["cpu"], row]), dict[int, int]()
    for record in ledger.on_node(name):
        wanted = dict(record.footprint.amounts).get("cpu", 0)
        owner = owners.number(record)
        by_owner[owner] = by_owner.get(owner, 0) + int(wanted)
    cells, taken = list[int](), 0
    for owner, amount in sorted(by_owner.items(), key=lambda pair: (-pair[1], pair[0])):
        taken += amount
        until = min(CPU_CELLS, round(CPU_CELLS * taken / offered)) if offered else 0
        cells += [owner] * (until - len(cells))
    return cells + [FREE] * (CPU_CELLS - len(cells))


def _by_name(record: PodRecord) -> tuple[str, str]:
    return record.namespace, record.name


def _places(ledger: Ledger, rows: list[int], level: TopologyLevel) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Returns the domains of a level, and the index of each row's domain."""
    values = []
    for row in rows:
        labels = ledger.nodes.labels.of_row(row)
        values.append(next((labels[key] for key in level.keys if labels.get(key)), ""))
    names = tuple(sorted(set(values) - {""}))
    numbers = {name: number for number, name in enumerate(names)}
    return names, tuple([numbers.get(value, -1) for value in values])


def _thousandths(ledger: Ledger, rows: list[int], resource: str) -> tuple[int, ...]:
    table = ledger.nodes.resources
    offered, used = table.alloc[table.index[resource]], table.used[table.index[resource]]
    return tuple([min(9999, int(used[row]) * 1000 // int(offered[row])) if offered[row] > 0 else 0 for row in rows])
