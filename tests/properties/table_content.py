"""What can be seen of a ledger and of a class's table, as plain values to compare."""

import copy
from typing import Any

import numpy as np

from kubenexus.api.core import Pod
from kubenexus.cycle.class_cache import ClassCache
from kubenexus.cycle.tie_break import TIE_BREAK_BITS
from kubenexus.framework.profile import ProfilePlugins
from kubenexus.state.devices.columns import held
from kubenexus.state.digest import digest
from kubenexus.state.ledger import Ledger

COLUMNS = {
    "nodes": ("alive", "cordoned", "blocked", "name_hash", "tie_break"),
    "resources": ("alloc", "used", "nonzero", "endless"),
    "devices": (
        "share",
        "memory",
        "card_memory",
        "bandwidth",
        "words",
        "free",
        "healthy",
        "gpus",
        "shared",
        "replicas",
    ),
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
    found["port tables"] = copy.deepcopy((nodes.ports._rows, nodes.ports._by_row))
    found["sums beyond the cap"] = dict(nodes.resources._exact_sums)
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
            "devices": (devices.free.item(row), held(devices, row)),
            "taints": columns.taints.sets[columns.taints.codes[row]],
            "images": [image for image, _ in columns.images.of_row(row)],
            "flags": (bool(columns.cordoned[row]), bool(columns.blocked[row]), columns.features[row]),
            "labels": columns.labels.of_row(row),
        }
    pods = {key: (p.uid, p.node, p.footprint, p.device_shares, p.priority, p.labels) for key, p in ledger.pods.items()}
    return found | {
        "pods": pods,
        "fences": ledger.blocked_nodes,
        "delegated": columns.device_class_resources,
        "waiting": waiting_on(ledger),
    }


def table_of(pod: Pod, ledger: Ledger, class_cache: ClassCache) -> dict[str, Any]:
    """All that a decision reads about this pod: for each node, and for the pod as a whole."""
    classified, columns = class_cache.lookup(pod, ledger.nodes), ledger.nodes
    table = classified.table
    found: dict[str, Any] = {
        "feasible": table.feasible_count,
        "refused": classified.rejection,
        "only": (classified.node_names, classified.node_names_by),
        "failed": table.score_error,
        "dead rows that look alive": np.flatnonzero(table.feasible & ~columns.alive[: columns.size]).tolist(),
    }
    for name, row in columns.row_of.items():
        reasons = {f.plugin.name: frozenset(f.reasons.read(f.at(row))) for f in table.filters}
        found[name] = {
            "ok": bool(table.feasible[row]),
            "reasons": {plugin: said for plugin, said in reasons.items() if said},
            "raw": {s.plugin.name: s.at(row) for s in table.scores if s.active} if table.feasible[row] else {},
            "rank": table.rank.item(row) + (table.sums.uniform << TIE_BREAK_BITS) * bool(table.feasible[row]),
        }
    return found


def fresh_table_of(pod: Pod, ledger: Ledger, profile_plugins: ProfilePlugins) -> dict[str, Any]:
    """The same without any memory."""
    return table_of(pod, ledger, ClassCache(profile_plugins))


def waiting_on(ledger: Ledger) -> dict[str, list[Any]]:
    """Pods that wait for a node, with all that counts of them."""
    return {
        node: sorted((n.key, n.uid, n.priority, n.footprint.amounts) for n in ledger.nominees(node))
        for node in ledger.nominated_nodes
        if ledger.nominees(node)
    }
