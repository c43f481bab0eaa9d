"""What discovery may do: the rules of its ClusterRole, and the keys that its admission policy lets it write."""

from collections.abc import Iterable
from typing import Any, Final

from kubenexus.api.keys import KeyEntry, scheduler
from kubenexus.api.keys.entry import pattern
from kubenexus.app.permissions import Permission
from kubenexus.client import kinds
from kubenexus.discovery.node_patch import ANNOTATIONS, LABELS

# RBAC cannot limit an account to its own node; the policy does (deploy/helm/kubenexus/templates/discovery.yaml).
PERMISSIONS: Final = (
    Permission("get", kinds.NODES),
    Permission("patch", kinds.NODES),
    *(Permission(verb, kinds.NODE_RESOURCE_TOPOLOGIES) for verb in ("get", "create", "patch", "delete")),
)


def key_expressions() -> dict[str, str]:
    """Returns regular expressions of RE2 for the labels and for the annotations that discovery writes."""
    return {"labels": _expression(LABELS), "annotations": _expression((*ANNOTATIONS, scheduler.DISCOVERED))}


def _expression(entries: Iterable[KeyEntry[Any]]) -> str:
    shapes = (pattern(entry.key).pattern.replace("\\-", "-").replace("\\.", "[.]") for entry in entries)
    return f"^({'|'.join(shapes)})$"
