"""A digest of the ledger that does not depend on row numbers, codes or the order of events.

A ledger built from a list must have the same digest as the live one. A difference means that an event was miscounted:
an idle rack can then look full until the scheduler restarts. A running scheduler has no second list to compare with; it
recounts its rows instead (`state.audit`).
"""

import hashlib
from typing import Any

import msgspec

from kubenexus.state.devices.columns import held
from kubenexus.state.ledger import Ledger
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.resources import BASICS

_encoder = msgspec.msgpack.Encoder(order="deterministic")


def digest(ledger: Ledger) -> str:
    """Returns the digest of all nodes, pods and nominations."""
    ledger.read_devices()
    with ledger.transaction() as transaction:  # without reserved capacity, which no list of pods contains
        for row, footprint in ledger.reservations.counted():
            transaction.lift_reserved(row, footprint)
        rows = {name: row_digest(ledger.nodes, row) for name, row in ledger.nodes.row_of.items()}
    pods = {
        key: (p.uid, p.node, p.footprint, p.device_shares, p.priority, p.labels, len(p.terms), p.terminating)
        for key, p in ledger.pods.items()
    }
    waiting = {
        node: sorted((n.key, n.uid, n.priority, repr(n.footprint)) for n in ledger.nominees(node))
        for node in ledger.nominated_nodes
    }
    return _hash((rows, pods, waiting, ledger.blocked_nodes, sorted(ledger.nodes.device_class_resources)))


def row_digest(nodes: NodeColumns, row: int) -> str:
    """Returns the digest of one node."""
    resources = nodes.resources
    # Skip resources that no node offers any more: a ledger built from a list would have no column for them.
    known = {name: r for name, r in resources.index.items() if resources.offering_rows[r] or name in BASICS}
    amounts = {name: (resources.alloc.item(r, row), resources.used.item(r, row)) for name, r in known.items()}
    endless = {name: resources.endless.item(r, row) for name, r in known.items()}
    nonzero = {name: resources.nonzero.item(r, row) for name, r in known.items()}
    ports = sorted((*port, count) for port, count in nodes.ports.on(row).items())
    devices = (nodes.devices.shared.item(row), nodes.devices.free.item(row), held(nodes.devices, row))
    taints = nodes.taints.sets[nodes.taints.codes[row]]
    images = [name for name, _ in nodes.images.of_row(row)]
    flags = (bool(nodes.cordoned[row]), bool(nodes.blocked[row]), sorted(nodes.features[row]))
    return _hash((amounts, endless, nonzero, ports, devices, taints, images, flags, nodes.labels.of_row(row)))


def _hash(content: Any) -> str:
    return hashlib.blake2b(_encoder.encode(content), digest_size=16).hexdigest()
