"""The rules by kind. A kind without an entry has the default rule."""

from typing import Any

from kubenexus.sim.apiserver import names
from kubenexus.sim.apiserver.kinds import ServedKind
from kubenexus.sim.apiserver.rules import custom, definitions, events, nodes_and_namespaces, pods, storage, workloads
from kubenexus.sim.apiserver.rules.base import Rule
from kubenexus.sim.apiserver.status_errors import Json

_RBAC = Rule(create_on_update=True, name=names.path_segment)


def _slice(item: Json) -> Any:
    return {**item, "metadata": item["metadata"].get("labels")}


RULES = {
    "pods": pods.POD,
    "nodes": nodes_and_namespaces.NODE,
    "namespaces": nodes_and_namespaces.NAMESPACE,
    "events": events.EVENT,
    "services": storage.SERVICE,
    "secrets": storage.SECRET,
    "serviceaccounts": Rule(returns_deleted=True),
    "endpoints": Rule(create_on_update=True),
    "persistentvolumes": storage.VOLUME,
    "persistentvolumeclaims": storage.CLAIM,
    "replicationcontrollers": workloads.CONTROLLER,
    "deployments.apps": workloads.DEPLOYMENT,
    "replicasets.apps": workloads.REPLICA_SET,
    "statefulsets.apps": workloads.STATEFUL_SET,
    "daemonsets.apps": workloads.DAEMON_SET,
    "jobs.batch": workloads.JOB,
    "cronjobs.batch": workloads.CRON_JOB,
    "poddisruptionbudgets.policy": nodes_and_namespaces.BUDGET,
    "leases.coordination.k8s.io": nodes_and_namespaces.LEASE,
    "priorityclasses.scheduling.k8s.io": nodes_and_namespaces.PRIORITY_CLASS,
    "podgroups.scheduling.k8s.io": workloads.POD_GROUP,
    "storageclasses.storage.k8s.io": storage.STORAGE_CLASS,
    "csinodes.storage.k8s.io": storage.CSI_NODE,
    "csidrivers.storage.k8s.io": storage.CSI_DRIVER,
    "csistoragecapacities.storage.k8s.io": storage.CSI_CAPACITY,
    "volumeattachments.storage.k8s.io": storage.ATTACHMENT,
    "resourceclaims.resource.k8s.io": storage.RESOURCE_CLAIM,
    "resourceclaimtemplates.resource.k8s.io": storage.RESOURCE_TEMPLATE,
    "resourceslices.resource.k8s.io": storage.RESOURCE_SLICE,
    "deviceclasses.resource.k8s.io": storage.DEVICE_CLASS,
    "devicetaintrules.resource.k8s.io": storage.DEVICE_CLASS,
    "endpointslices.discovery.k8s.io": Rule(generation=True, counted=_slice),
    "roles.rbac.authorization.k8s.io": _RBAC,
    "rolebindings.rbac.authorization.k8s.io": _RBAC,
    "clusterroles.rbac.authorization.k8s.io": _RBAC,
    "clusterrolebindings.rbac.authorization.k8s.io": _RBAC,
    "customresourcedefinitions.apiextensions.k8s.io": definitions.DEFINITION,
}
_USUAL = Rule()


def rule_of(kind: ServedKind) -> Rule:
    if kind.custom is not None:
        return custom.rule(kind)
    return RULES.get(kind.store, _USUAL)
