"""PodGroups with device claims of their own (`spec.resourceClaims`, the gate DRAWorkloadResourceClaims).

A claim of a pod belongs to its PodGroup if that lists the same claim: equal in its name within the pod, and in the
ResourceClaim or the template that it names. Such a claim is reserved once, for the PodGroup. An API server without the
gate drops the field, so a PodGroup that has it shows that the gate is on.
"""

from typing import Final

import msgspec

from kubenexus.api.core import Pod, PodResourceClaim
from kubenexus.api.devices.resource_claim import ConsumerReference, ResourceClaim
from kubenexus.api.workloads import PodGroup

GROUP: Final = "scheduling.k8s.io"
POD_GROUPS: Final = "podgroups"


class _GroupClaims(msgspec.Struct, frozen=True, gc=False):
    """The claims of a PodGroup, and how claims refer to the PodGroup as their user."""

    claims: frozenset[tuple[str, str, str]]
    user: ConsumerReference


class PodGroupClaims:
    """The claims of PodGroups by namespace and name; of those without claims there is nothing."""

    def __init__(self) -> None:
        self._groups: dict[tuple[str, str], _GroupClaims] = {}

    def set(self, group: PodGroup) -> None:
        meta, claims = group.metadata, frozenset(map(_identity, group.spec.resource_claims))
        if claims:
            user = ConsumerReference(api_group=GROUP, resource=POD_GROUPS, name=meta.name, uid=meta.uid)
            self._groups[meta.namespace, meta.name] = _GroupClaims(claims, user)
        else:
            self._groups.pop((meta.namespace, meta.name), None)

    def remove(self, key: str) -> None:
        namespace, _, name = key.partition("/")
        self._groups.pop((namespace, name), None)

    def user(self, pod: Pod) -> ConsumerReference | None:
        """Returns the PodGroup of a pod as a user of claims; None if the pod has none, or one without claims."""
        found = self._of(pod)
        return None if found is None else found.user

    def user_of(self, pod: Pod, claim: PodResourceClaim) -> ConsumerReference | None:
        """Returns the PodGroup of a pod if the claim of the pod is one of the PodGroup's, else None."""
        found = self._of(pod)
        return found.user if found is not None and _identity(claim) in found.claims else None

    def _of(self, pod: Pod) -> _GroupClaims | None:
        named = pod.spec.scheduling_group
        return None if named is None else self._groups.get((pod.metadata.namespace, named.pod_group_name))


def is_for_pod_group(claim: ResourceClaim, group: ConsumerReference) -> bool:
    """Whether a claim was made for a PodGroup. As with kube-scheduler its UID does not count: a claim of an earlier
    PodGroup of that name is about to be collected as garbage."""
    return any(
        each.controller
        and (each.kind, each.name) == ("PodGroup", group.name)
        and each.api_version.startswith(f"{GROUP}/")
        for each in claim.metadata.owner_references
    )


def _identity(claim: PodResourceClaim) -> tuple[str, str, str]:
    return claim.name, claim.resource_claim_name, claim.resource_claim_template_name
