"""Reads a cluster from a file that `kubectl get nodes,pods,... -A -o json` printed into a ledger."""

from collections.abc import Collection
from typing import Any

import msgspec

from kubenexus.api.codec import Unreadable, from_json, read_object
from kubenexus.api.core import Node, Pod
from kubenexus.api.meta import ObjectMeta
from kubenexus.api.reservations.request import request_of
from kubenexus.app.reservations.adoption import adopt, nodes_before
from kubenexus.base.errors import KubeNexusError, Malformed
from kubenexus.state.ledger import Ledger
from kubenexus.state.object_kinds import KINDS, apply_object, kind_name
from kubenexus.state.tenants import Tenants


class _Item(msgspec.Struct, gc=False, rename="camel"):
    kind: str = ""
    api_version: str = ""


class _Priority(msgspec.Struct, gc=False, rename="camel"):
    metadata: ObjectMeta = ObjectMeta()
    value: int = 0
    global_default: bool = False


class _List(msgspec.Struct, gc=False):
    kind: str = ""
    items: list[msgspec.Raw] | None = None


Item = tuple[str, msgspec.Raw]  # an object, and its kind as `state.object_kinds` has it


class ClusterDump(msgspec.Struct):
    """The ledger, the pods by key, the nodes by name, and what could not be used: `problems` by object, `ignored`
    counts by kind. `priorities` has the values of PriorityClasses; that of the default is under ""."""

    ledger: Ledger
    pods: dict[str, Pod]
    nodes: dict[str, Node]
    problems: list[str]
    ignored: dict[str, int]
    priorities: dict[str, int] = {}


def read_dump(raw: bytes, source: str, own_tier: Collection[str] = ()) -> ClusterDump:
    """Reads the output of kubectl. Raises KubeNexusError, naming `source`, if it is not a list of Kubernetes objects.
    `own_tier` are the profiles whose pods may choose their tier."""
    try:
        found = from_json(raw, _List)
    except Malformed as error:
        raise KubeNexusError(f"{source}: not JSON as kubectl prints it: {error}") from None
    if found.items is None:
        raise KubeNexusError(f"{source}: expected a List with `items`, as `kubectl get ... -o json` prints it")
    return build_dump([(_kind(item), item) for item in found.items], own_tier)


def build_dump(items: list[Item], own_tier: Collection[str] = ()) -> ClusterDump:
    """Puts the objects into a ledger."""
    dump = ClusterDump(Ledger(Tenants(own_tier), keeps_movable=True), {}, {}, [], {}, {})
    # Nodes after the other kinds and pods last: in this order the ledger counts nothing twice.
    for kind, item in sorted(items, key=lambda pair: (pair[0] == "Pod", pair[0] == "Node")):
        _take(dump, kind, item)
    dump.ledger.read_devices()
    _adopt_reservations(dump)
    return dump


def _adopt_reservations(dump: ClusterDump) -> None:
    """Reserves what the statuses of ResourceReservations list. Those of gangs only report the state of the queue."""
    for thing in dump.ledger.reservation_objects.by_key.values():
        try:
            request = request_of(thing)
        except Malformed as problem:
            dump.problems.append(str(problem.within(subject=f"ResourceReservation {thing.metadata.key}")))
            continue
        nodes = {} if thing.is_for_gang else nodes_before(thing, request)
        if nodes:
            adopt(dump.ledger, request, nodes, thing.status.pods)


def _kind(item: msgspec.Raw) -> str:
    try:
        found = from_json(item, _Item)
    except Malformed:
        return ""
    return kind_name(found.kind, found.api_version.rpartition("/")[0])


def _take(dump: ClusterDump, kind: str, item: msgspec.Raw) -> None:
    """Adds one object to the dump. An object that cannot be read becomes a problem and does not affect the others."""
    if kind not in KINDS:
        dump.ignored[kind or "(no kind)"] = dump.ignored.get(kind or "(no kind)", 0) + 1
        return
    found: Any = read_object(item, KINDS[kind].type)
    if isinstance(found, Unreadable):
        dump.problems.append(str(found.error))
        if kind == "Pod" and found.identified and not found.ended:
            dump.ledger.block_unreadable_pod(f"{found.namespace}/{found.name}", found.node)
        return
    if kind == "PriorityClass":
        _take_priority(dump, item)
    if isinstance(found, Pod):
        dump.pods[found.key] = found
    try:
        apply_object(dump.ledger, kind, found)
    except Malformed as problem:
        dump.problems.append(str(problem))
        return
    if isinstance(found, Node):
        dump.nodes[found.metadata.name] = found


def _take_priority(dump: ClusterDump, item: msgspec.Raw) -> None:
    try:
        found = from_json(item, _Priority)
    except Malformed as problem:
        dump.problems.append(str(problem))
        return
    dump.priorities[found.metadata.name] = found.value
    if found.global_default:
        dump.priorities[""] = found.value
