"""A fingerprint of the ledger that does not depend on rows, codes or the order of events.

The ledger can be rebuilt from a list at any time; live and rebuilt digests must be equal. A difference means that
some event was miscounted: the kind of bug that makes an idle rack look full until somebody restarts the scheduler.
A scheduler that runs has no second list to compare with; it counts its rows anew (`state.audit`).
"""

import hashlib
from typing import Any

import msgspec

from kubenexus.state.ledger import Ledger
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.resources import BASICS

_encoder = msgspec.msgpack.Encoder(order="deterministic")


def digest(ledger: Ledger) -> str:
    """Over all nodes and all pods."""
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
    """One node."""
    resources = nodes.resources
    # A resource that no node offers any more may still be counted; a ledger built now would not know of it.
    known = {name: r for name, r in resources.index.items() if resources.offering_rows[r] or name in BASICS}
    amounts = {name: (resources.alloc.item(r, row), resources.used.item(r, row)) for name, r in known.items()}
    endless = {name: resources.endless.item(r, row) for name, r in known.items()}
    nonzero = {name: resources.nonzero.item(r, row) for name, r in known.items()}
    ports = sorted((*port, count) for port, count in nodes.ports.on(row).items())
    devices = [
        (device, nodes.devices.share.item(slot, row), nodes.devices.vram.item(slot, row))
        for slot, device in enumerate(nodes.devices.of_row(row))
    ]
    taints = nodes.taints.sets[nodes.taints.codes[row]]
    images = [name for name, _ in nodes.images.of_row(row)]
    flags = (bool(nodes.cordoned[row]), bool(nodes.blocked[row]), sorted(nodes.features[row]))
    return _hash((amounts, endless, nonzero, ports, devices, taints, images, flags, nodes.labels.of_row(row)))


def _hash(content: Any) -> str:
    return hashlib.blake2b(_encoder.encode(content), digest_size=16).hexdigest()
