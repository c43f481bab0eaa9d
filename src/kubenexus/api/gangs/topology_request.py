"""The topology request in a pod's annotations. A PodGroup's constraint has precedence over it."""

from kubenexus.api.core import Pod
from kubenexus.api.gangs.declaration import NO_TOPOLOGY_REQUEST, TopologyRequest, require_key
from kubenexus.api.gangs.levels import CLIQUE
from kubenexus.api.keys import gang, network

_KEYS = frozenset().union(
    gang.KUEUE_REQUIRED_TOPOLOGY.keys,
    gang.KUEUE_PREFERRED_TOPOLOGY.keys,
    network.CO_LOCATE.keys,
    network.REQUIRE_CLIQUE.keys,
)


def topology_request_of(pod: Pod) -> TopologyRequest:
    """Returns the pod's topology request. Kueue's annotations name a level; ours (`co-locate`, `require-clique`) mean
    the NVLink domain. Raises Malformed if one cannot be read: a requirement must not be lost to a typing error.

    A pod that Kueue admitted has the domain that Kueue chose as node selector, and each pod set of its Workload may
    have another. So its annotations of Kueue ask for nothing more."""
    meta = pod.metadata
    if _KEYS.isdisjoint(meta.labels) and _KEYS.isdisjoint(meta.annotations):
        return NO_TOPOLOGY_REQUEST
    clique, locate = require_key(network.REQUIRE_CLIQUE, pod), require_key(network.CO_LOCATE, pod)
    required = preferred = ""
    assigned = gang.KUEUE_WORKLOAD.key in meta.annotations
    if not assigned:
        required = require_key(gang.KUEUE_REQUIRED_TOPOLOGY, pod).value or ""
        preferred = require_key(gang.KUEUE_PREFERRED_TOPOLOGY, pod).value or ""
    if clique.value or locate.value == "strict":
        required = required or CLIQUE
    elif locate.value == "preferred":
        preferred = preferred or CLIQUE
    explicit = bool(required or preferred or clique.is_set or locate.is_set or assigned)
    return TopologyRequest(required, preferred, explicit)
