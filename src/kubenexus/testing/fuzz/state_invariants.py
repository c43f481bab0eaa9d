"""Invariants of the state: placements, amounts, blocked nodes, and the ledger as a whole."""

from collections.abc import Iterable, Iterator
from random import Random
from typing import Any, Final

import msgspec

from kubenexus.api.core import Node, Pod, Taint
from kubenexus.api.node_selectors import matches, node_selector_term, parse_required
from kubenexus.api.tolerations import tolerated, untolerated
from kubenexus.base.arrays import AMOUNT_CAP
from kubenexus.base.errors import truncated
from kubenexus.framework.decision import PodPlacement
from kubenexus.state.digest import digest, row_digest
from kubenexus.state.ledger import Ledger
from kubenexus.testing.fuzz.reference_ledger import ReferenceLedger, offered, wanted

_CORDON: Final = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


def placement(placed: PodPlacement, pod: Pod, reference: ReferenceLedger) -> str:
    """No pod is placed on a node that is missing, blocked, unwanted or full. Checked exactly, before the commit."""
    node = reference.nodes.get(placed.node)
    if node is None:
        return f"put on {truncated(placed.node)!r}, which does not exist"
    if node.metadata.name in reference.blocked.values():
        return f"put on {truncated(placed.node)}, which runs a pod that cannot be read"
    return _unwanted(pod, node) or _too_large(pod, node, reference)


def _unwanted(pod: Pod, node: Node) -> str:
    name, labels, spec = node.metadata.name, node.metadata.labels, pod.spec
    if node.spec.unschedulable and not tolerated(spec.tolerations, _CORDON):
        return f"put on {name}, which is cordoned"
    # Ten thousand taints against as many tolerations are covered by `call_counting`.
    if len(node.spec.taints) < 100 and untolerated(spec.tolerations, node.spec.taints):
        return f"put on {name} against its taints"
    affinity = spec.affinity.node_affinity if spec.affinity else None
    if not matches(node_selector_term(spec.node_selector), name, labels):
        return f"put on {name} against its nodeSelector"
    if affinity and affinity.required and not parse_required(affinity.required).matches(name, labels):
        return f"put on {name} against its node affinity"
    return ""


def _too_large(pod: Pod, node: Node, reference: ReferenceLedger) -> str:
    has, taken = offered(node), reference.used(node.metadata.name)
    for name, amount in {**wanted(pod, status=False), "pods": 1}.items():
        if taken.get(name, 0) + amount > has.get(name, 0):
            return f"{truncated(name)} on {node.metadata.name}: {taken.get(name, 0)} + {amount} of {has.get(name, 0)}"
    return ""


def recount_differences(ledger: Ledger, reference: ReferenceLedger) -> Iterator[str]:
    """Yields each node, amount and blocked node that differs from the reference, recounted with exact integers."""
    if ledger.nodes.row_of.keys() != reference.nodes.keys():
        yield f"other nodes: {sorted(map(truncated, ledger.nodes.row_of.keys() ^ reference.nodes.keys()))[:5]}"
        return
    fences = {
        node: sorted(key for key, at in reference.blocked.items() if at == node) for node in reference.blocked.values()
    }
    if ledger.blocked_nodes != fences:
        yield "other nodes are fenced than should be"
    resources = ledger.nodes.resources
    for name, node in reference.nodes.items():
        row, has, taken = ledger.nodes.row_of[name], offered(node), reference.used(name)
        for resource, r in resources.index.items():
            for array, exact in ((resources.alloc, has.get(resource, 0)), (resources.used, taken.get(resource, 0))):
                if not _stands_for(array.item(r, row), exact):
                    what, counted = f"{truncated(resource)} on {truncated(name)}", array.item(r, row)
                    yield f"an amount is miscounted: {what} is {counted}, not {exact}"


def _stands_for(counted: int, exact: int) -> bool:
    """Whether a counter represents this amount. Amounts beyond the cap are capped, offered ones perhaps one lower."""
    return counted == exact if exact < AMOUNT_CAP - 1 else counted in (AMOUNT_CAP - 1, AMOUNT_CAP)


def rebuilt_ledger(reference: ReferenceLedger, rng: Random) -> Ledger:
    """Returns a ledger built only from the accepted objects, in another order."""
    ledger = Ledger()
    nodes, placed = _shuffled(reference.nodes.values(), rng), _shuffled(reference.placed.values(), rng)
    absent = {held.node for held in placed if held.ours} - reference.nodes.keys()
    for node in [*nodes, *(msgspec.structs.replace(Node(), metadata=_named(name)) for name in sorted(absent))]:
        ledger.upsert_node(node)
    for held in placed:
        ledger.assume(held.pod, held.node, 0.0) if held.ours else ledger.upsert_pod(held.pod)
    for pod in _shuffled(reference.nominated.values(), rng):
        ledger.upsert_pod(pod)
    for name in absent:
        ledger.remove_node(name)
    for key, node_name in reference.blocked.items():
        ledger.block_unreadable_pod(key, node_name)
    for device_class in _shuffled(reference.classes.values(), rng):
        ledger.upsert_device_class(device_class)
    return ledger


def digests(live: Ledger, again: Ledger) -> str:
    """Returns "" if both ledgers have the same digest, otherwise the first difference."""
    if digest(live) == digest(again):
        return ""
    for name, row in live.nodes.row_of.items():
        if row_digest(live.nodes, row) != row_digest(again.nodes, again.nodes.row_of[name]):
            return f"a row parts: {truncated(name)}, {_parting(live, again, name)}"
    for key, record in live.pods.items():
        other = again.pods.get(key)
        if other is None or (record.uid, record.node, record.footprint) != (other.uid, other.node, other.footprint):
            return f"a pod counts otherwise: {truncated(str(record))}, {truncated(str(other))}"
    return "other pods, nominations, fences or delegated resources"


def _parting(live: Ledger, again: Ledger, name: str) -> str:
    """Returns which parts of a row differ."""
    sides = []
    for nodes in (live.nodes, again.nodes):
        row, resources = nodes.row_of[name], nodes.resources
        amounts = ((resource, r) for resource, r in resources.index.items() if resources.nonzero[r, row])
        sides.append(
            {
                "amounts that scores see": {resource: resources.nonzero.item(r, row) for resource, r in amounts},
                "ports": nodes.ports.on(row),
                "taints": nodes.taints.sets[nodes.taints.codes[row]],
                "images": [image for image, _ in nodes.images.of_row(row)],
                "labels": nodes.labels.of_row(row),
            }
        )
    parts = [
        f"{part} {truncated(str(held))} and {truncated(str(sides[1][part]))}"
        for part, held in sides[0].items()
        if held != sides[1][part]
    ]
    return "; ".join(parts) or "another part"


def _shuffled(values: Iterable[Any], rng: Random) -> list[Any]:
    found = list(values)
    rng.shuffle(found)
    return found


def _named(name: str) -> Any:
    return msgspec.structs.replace(Node().metadata, name=name)
