"""Kinds and versions that a server has only if its gates or its runtime configuration say so.

GenericWorkload=true               PodGroups (`scheduling.k8s.io/v1beta1` and v1alpha3)
DRAWorkloadResourceClaims=true     PodGroups keep `spec.resourceClaims`
resource.k8s.io/v1=false           device claims are not served as v1
resource.k8s.io/v1beta2=true       device claims are served as v1beta2, which has the same fields
"""

from collections.abc import Collection, Mapping
from typing import Final

from msgspec.structs import replace

from kubenexus.base.errors import KubeNexusError
from kubenexus.sim.apiserver.kinds import Registry, ServedKind, Subresource

GENERIC_WORKLOAD: Final = "GenericWorkload"
POD_GROUP_CLAIMS: Final = "DRAWorkloadResourceClaims"
CLAIMS, CLAIMS_BETA = "resource.k8s.io/v1", "resource.k8s.io/v1beta2"
_POD_GROUPS: Final = "scheduling.k8s.io"
_VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_COLUMNS: Final = [
    {"name": "Name", "type": "string", "format": "name", "description": "Name must be unique", "priority": 0},
    {"name": "Age", "type": "string", "format": "", "description": "Time of creation", "priority": 0},
]


def serve_optional_kinds(registry: Registry, gates: Collection[str], versions: Mapping[str, bool]) -> None:
    """Adds and removes kinds as gates and versions say. Raises KubeNexusError for those that are not known here."""
    _check("feature gate", gates, (GENERIC_WORKLOAD, POD_GROUP_CLAIMS))
    _check("version", versions, (CLAIMS, CLAIMS_BETA))
    if GENERIC_WORKLOAD in gates:
        serve_pod_groups(registry)
    served = [kind for kind in registry.all() if kind.group_version == CLAIMS]
    for kind in served:
        if not versions.get(CLAIMS, True):
            registry.remove(kind)
        if versions.get(CLAIMS_BETA, False):
            registry.add(replace(kind, group_version=CLAIMS_BETA))


def serve_pod_groups(registry: Registry) -> None:
    """Serves PodGroups. They are stored as sent, without validation."""
    for version in ("v1beta1", "v1alpha3"):
        registry.add(
            ServedKind(
                f"{_POD_GROUPS}/{version}",
                "podgroups",
                "PodGroup",
                "podgroup",
                verbs=_VERBS,
                subresources={"status": Subresource("PodGroup", ("get", "patch", "update"))},
                columns=_COLUMNS,
            )
        )


def _check(what: str, given: Collection[str], known: tuple[str, ...]) -> None:
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise KubeNexusError(f"unknown {what} {unknown[0]!r}; known: {', '.join(known)}")
