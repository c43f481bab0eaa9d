"""What can be seen of a ledger and of a class's table, as plain values to compare."""

from typing import Any

import numpy as np

from kubenexus.api.core import Pod
from kubenexus.cycle.bench import Bench
from kubenexus.cycle.lots import BITS
from kubenexus.framework.profile import Lineup
from kubenexus.state.digest import digest
from kubenexus.state.ledger import Ledger

COLUMNS = {
    "nodes": ("alive", "cordoned", "fenced", "lot", "draw"),
    "resources": ("alloc", "used", "nonzero"),
    "devices": ("share", "vram", "numa", "switch", "clique", "healthy"),
    "taints": ("codes",),
}


def bytes_of(ledger: Ledger) -> dict[str, Any]:
    """Every column that placements write or rules read, byte for byte, and the tables of ports."""
    nodes = ledger.nodes
    owners = {"nodes": nodes, "resources": nodes.resources, "devices": nodes.devices, "taints": nodes.taints}
    found: dict[str, Any] = {
        f"{owner}.{column}": getattr(owners[owner], column).tobytes()
        for owner, columns in COLUMNS.items()
        for column in columns
    }
    found["ports"] = {row: nodes.ports.on(row) for row in range(nodes.size)}
    found["digest"] = digest(ledger)
    return found


def content_of(ledger: Ledger) -> dict[str, Any]:
    """What the digest is over, to see where two ledgers differ."""
    columns, found = ledger.nodes, {}
    resources, devices = columns.resources, columns.devices
    for name, row in columns.row_of.items():
        amounts = {
            resource: (resources.alloc.item(r, row), resources.used.item(r, row), resources.nonzero.item(r, row))
            for resource, r in resources.index.items()
        }
        found[name] = {
            "amounts": {resource: three for resource, three in amounts.items() if any(three)},
            "ports": columns.ports.on(row),
            "devices": [
                (d, devices.share.item(s, row), devices.vram.item(s, row)) for s, d in enumerate(devices.of_row(row))
            ],
            "taints": columns.taints.sets[columns.taints.codes[row]],
            "images": [image for image, _ in columns.images.of_row(row)],
            "flags": (bool(columns.cordoned[row]), bool(columns.fenced[row]), columns.features[row]),
            "labels": columns.labels.of_row(row),
        }
    pods = {key: (p.uid, p.node, p.footprint, p.takes, p.priority, p.labels) for key, p in ledger.pods.items()}
    return found | {
        "pods": pods,
        "fences": ledger.fences,
        "delegated": columns.delegated,
        "waiting": waiting_on(ledger),
    }


def table_of(pod: Pod, ledger: Ledger, bench: Bench) -> dict[str, Any]:
    """All that a decision reads about this pod: for each node, and for the pod as a whole."""
    member, columns = bench.look(pod, ledger.nodes), ledger.nodes
    table = member.table
    found: dict[str, Any] = {
        "feasible": table.feasible,
        "refused": member.refused,
        "only": (member.only, member.only_by),
        "failed": table.failed,
        "dead rows that look alive": np.flatnonzero(table.ok & ~columns.alive[: columns.size]).tolist(),
    }
    for name, row in columns.row_of.items():
        reasons = {f.plugin.name: frozenset(f.reasons.read(f.at(row))) for f in table.filters}
        found[name] = {
            "ok": bool(table.ok[row]),
            "reasons": {plugin: said for plugin, said in reasons.items() if said},
            "raw": {s.plugin.name: s.at(row) for s in table.scores if s.active},
            "rank": table.rank.item(row) + (table.constant << BITS) * bool(table.ok[row]),
        }
    return found


def fresh_table_of(pod: Pod, ledger: Ledger, lineup: Lineup) -> dict[str, Any]:
    """The same without any memory."""
    return table_of(pod, ledger, Bench(lineup))


def waiting_on(ledger: Ledger) -> dict[str, list[Any]]:
    """Pods that wait for a node, with all that counts of them."""
    return {
        node: sorted((n.key, n.uid, n.priority, n.footprint.amounts) for n in ledger.nominees(node))
        for node in ledger.nominated_nodes
        if ledger.nominees(node)
    }
