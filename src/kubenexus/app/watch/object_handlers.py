"""`ObjectHandlers`: watch events of all kinds other than pods and nodes, to the ledger and the queue.

Most kinds are objects that pods name or depend on: volumes, device claims, PodGroups, namespaces. A change is applied
to the ledger first; then the queue gets an event if some refused pod may have waited for it.
"""

from typing import Any

from kubenexus.api.codec import Unreadable
from kubenexus.app.report.tenant_usage import TenantUsage
from kubenexus.app.watch.bad_object_log import BadObjectLog
from kubenexus.app.watch.object_cache import FINGERPRINTED, ObjectCache, fingerprint
from kubenexus.base.errors import Malformed
from kubenexus.bind.claim_prebind import ClaimPreBind
from kubenexus.bind.volume_prebind import VolumePreBind
from kubenexus.client.watch_events import before as is_before
from kubenexus.framework.cluster_events import ActionType, ClusterEvent, EventResource
from kubenexus.observe import logs
from kubenexus.queue import object_events
from kubenexus.queue.gangs.job_assembler import JobAssembler
from kubenexus.queue.scheduling_queue import SchedulingQueue
from kubenexus.state.ledger import Ledger
from kubenexus.state.object_kinds import GROUP_KINDS, KINDS, TENANT_KINDS

NODE_REPORT = "NodeResourceTopology"
# Kinds that some refused pod may wait for, and how events name them.
EVENTS = {
    "StorageClass": EventResource.STORAGE_CLASS,
    "CSIDriver": EventResource.CSI_DRIVER,
    "CSINode": EventResource.CSI_NODE,
    "CSIStorageCapacity": EventResource.CSI_STORAGE_CAPACITY,
    "PersistentVolume": EventResource.PERSISTENT_VOLUME,
    "PersistentVolumeClaim": EventResource.PERSISTENT_VOLUME_CLAIM,
    "VolumeAttachment": EventResource.VOLUME_ATTACHMENT,
    "DeviceClass": EventResource.DEVICE_CLASS,
    "DeviceTaintRule": EventResource.DEVICE_TAINT_RULE,
    "ResourceClaim": EventResource.RESOURCE_CLAIM,
    "ResourceSlice": EventResource.RESOURCE_SLICE,
    NODE_REPORT: EventResource.NODE_RESOURCE_TOPOLOGY,
}

log = logs.get("object_handlers")


class ObjectHandlers:
    """Applies watch events of all kinds other than pods and nodes. `volumes` and `claims` wait in PreBind for changes
    of claims."""

    def __init__(
        self,
        ledger: Ledger,
        queue: SchedulingQueue,
        cache: ObjectCache,
        assembler: JobAssembler,
        *,
        volumes: VolumePreBind,
        claims: ClaimPreBind,
        tenant_usage: TenantUsage,
        bad_objects: BadObjectLog,
    ) -> None:
        self._ledger, self._queue, self._cache, self._assembler = ledger, queue, cache, assembler
        self._volumes, self._claims, self._tenant_usage, self._bad_objects = volumes, claims, tenant_usage, bad_objects

    def keys(self, kind: str) -> set[str]:
        return {*self._cache.of(kind), *self._ledger.groups.unreadable_keys(kind)}

    def unreadable(self, kind: str, bad: Unreadable) -> None:
        """Handles an object other than a pod that cannot be decoded: its cached state stays. Pods that name it are held
        with that reason."""
        self._bad_objects.log(bad.subject, str(bad.error))
        key = f"{bad.namespace}/{bad.name}"
        if kind in GROUP_KINDS and bad.identified and self._ledger.groups.unreadable(kind, key, bad.error):
            self._assembler.group_changed(kind, key)

    def on_update(self, kind: str, thing: Any) -> None:
        key, known, selected = thing.metadata.key, self._cache.of(kind), self._ledger.nodes.pods.existing_terms_version
        if kind == "ResourceClaim" and _is_known(thing, known.get(key)):
            return
        try:
            KINDS[kind].seen(self._ledger, thing)
        except Malformed as problem:
            self._bad_objects.log(f"{kind} {key}", str(problem))
            return
        resource, fresh = EVENTS.get(kind), key not in known
        if kind == "Namespace" and (not fresh or self._has_pods(key)):
            self._wake_if_terms_changed(selected)
        if kind in TENANT_KINDS:
            self._apply_tenants()
        kept = None if resource is None else fingerprint(thing) if kind in FINGERPRINTED else thing
        old, known[key] = known.get(key), kept
        before = None if kind in FINGERPRINTED else old
        if kind in GROUP_KINDS:
            self._assembler.group_changed(kind, key)
        self._changed(kind, thing)
        if resource is not None and (fresh or old != kept):
            self._queue.on_event(ClusterEvent(resource, ActionType.ADD if fresh else ActionType.UPDATE, before, thing))

    def on_delete(self, kind: str, key: str) -> None:
        known = self._cache.of(kind)
        if key not in known:
            if kind in GROUP_KINDS:  # one that could never be read
                self._ledger.groups.gone(kind, key)
                self._assembler.group_changed(kind, key)
            return
        old, resource, selected = known.pop(key), EVENTS.get(kind), self._ledger.nodes.pods.existing_terms_version
        KINDS[kind].gone(self._ledger, key)
        if kind == "Namespace":
            self._wake_if_terms_changed(selected)
        if kind in TENANT_KINDS:
            self._apply_tenants()
        if kind in GROUP_KINDS:
            self._assembler.group_changed(kind, key)
        if resource is not None:
            self._changed(kind, old)
            before = None if kind in FINGERPRINTED else old
            self._queue.on_event(ClusterEvent(resource, ActionType.DELETE, old=before))

    def _changed(self, kind: str, thing: Any) -> None:
        if kind == "PersistentVolumeClaim":
            self._volumes.on_claim_changed(thing.metadata.key)
        elif kind == "ResourceClaim":
            self._claims.on_claim_changed(thing.metadata.key)

    def _has_pods(self, namespace: str) -> bool:
        """Whether any pod of a namespace runs or waits: terms may select one that runs, or a waiting pod itself."""
        return self._ledger.nodes.pods.has_pods(namespace) or self._queue.has_jobs_of(namespace)

    def _wake_if_terms_changed(self, selected: int) -> None:
        """Wakes all jobs if the labels of a namespace changed which affinity terms select its pods."""
        if selected != self._ledger.nodes.pods.existing_terms_version:
            self._queue.on_event(object_events.WILDCARD_EVENT)

    def _apply_tenants(self) -> None:
        """Lets the queue sign and sort jobs again whose tenants have changed, and logs tiers that cannot be read."""
        for subject, problem in self._ledger.nodes.tenants.take_warnings().items():
            log.warning("Cannot read a tier; it counts as not set", object=subject, why=problem)
        for namespace in self._ledger.nodes.tenants.take_changed():
            self._queue.on_tenant_change(namespace)
            self._tenant_usage.on_namespace(namespace)

    # --- kinds that cannot be listed ------------------------------------------------------------------------------

    def unlisted(self, kind: str) -> None:
        """Records that the objects of this kind are not known, or no longer. Gangs that name one are held with that
        reason."""
        if kind == "ResourceClaim":
            self._ledger.nodes.claims.unlisted = True
        if kind in GROUP_KINDS and self._ledger.groups.unlisted(kind):
            self._assembler.kind_changed(kind)

    def listed(self, kind: str) -> None:
        """Records that a list of this kind is complete."""
        if kind == "ResourceClaim" and self._ledger.nodes.claims.unlisted:
            self._ledger.nodes.claims.unlisted = False
            self._queue.on_event(object_events.WILDCARD_EVENT)
        if kind in GROUP_KINDS and self._ledger.groups.listed(kind):
            self._assembler.kind_changed(kind)


def _is_known(thing: Any, known: Any) -> bool:
    """Whether a watch event brings nothing: our own writes are known before the watch brings them."""
    if known is None or known.metadata.uid != thing.metadata.uid:
        return False
    if thing.metadata.resource_version == known.metadata.resource_version:
        return bool(thing == known)
    return is_before(thing.metadata.resource_version, known.metadata.resource_version)
