"""The tenant of a pod: its name and its tier."""

from typing import Final, NamedTuple

from kubenexus.api.core import Pod
from kubenexus.api.keys import tenant
from kubenexus.api.keys.reading import read_key
from kubenexus.plugins.devices.tenant_tier import tier_of
from kubenexus.state.nodes import NodeColumns

# The labels and annotations of a pod that its tenant may depend on, besides its namespace.
POD_KEYS: Final = tenant.POD_TIER.keys | tenant.NAME.keys | tenant.QUEUE.keys


class Tenant(NamedTuple):
    name: str
    tier: str


def tenant_of(pod: Pod, nodes: NodeColumns) -> Tenant:
    """Returns the tenant: the name on the namespace, else the namespace itself. What a pod says of its tenant's name
    is not believed, since its use is counted under that name."""
    namespace = pod.metadata.namespace
    labels = nodes.pods.namespace_labels(namespace)
    name = read_key(tenant.NAME, labels, {}).value if labels else None
    return Tenant(name or namespace, tier_of(pod, nodes))


def tier_source(pod: Pod, nodes: NodeColumns) -> str:
    """Returns where the pod's tier comes from, in words."""
    meta = pod.metadata
    labels = nodes.pods.namespace_labels(meta.namespace)
    given = read_key(tenant.TIER, labels or {}, {})
    own = read_key(tenant.POD_TIER, meta.labels, meta.annotations)
    if given.value != tier_of(pod, nodes):
        return f"key {own.source_key} of the pod" if own.is_set else "other fields of the pod, or its queue"
    return f"namespace label {given.source_key}" if given.is_set else "default"
