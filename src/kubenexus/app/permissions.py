"""Checks at the start which permissions the process has, with one SelfSubjectAccessReview for each.

A missing permission is then one clear message at the start, not a refused write hours later.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from kubenexus.api.meta import ApiObject
from kubenexus.app.election.lease import LeaseConfig
from kubenexus.base.errors import KubeNexusError
from kubenexus.client import kinds
from kubenexus.client.calls import Api, ApiError
from kubenexus.client.kinds import ApiResource
from kubenexus.client.verbs import create

HELP = "deploy/kubenexus-scheduler.yaml has the roles that the scheduler needs"


class Permission(NamedTuple):
    """A verb on a resource, optionally on a subresource (`part`), in one namespace, or on one object."""

    verb: str
    resource: ApiResource
    part: str = ""
    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        what = f"{self.resource}/{self.part}" if self.part else str(self.resource)
        return f"{self.verb} {what}" + (f" in {self.namespace}" if self.namespace else "")


class _Verdict(ApiObject):
    allowed: bool = False


class _Review(ApiObject):
    status: _Verdict = _Verdict()


# Pods are bound without these. The warning at the start names what does not work.
OPTIONAL_PERMISSIONS: Mapping[Permission, str] = {
    Permission("get", kinds.PODS): "a bind without an answer keeps its capacity until the watch shows what happened",
    Permission("patch", kinds.PODS, "status"): "pods do not say why they wait",
    Permission("create", kinds.PODS, "eviction"): "no pods are evicted for others, nor gangs that stay incomplete",
    Permission("delete", kinds.PODS): "pods of a profile named default-scheduler do not preempt others",
    Permission("patch", kinds.POD_GROUPS, "status"): "pod groups do not say why they wait",
    Permission("patch", kinds.RESOURCE_RESERVATIONS, "status"): "ResourceReservations do not say what became of them",
    Permission("create", kinds.RESOURCE_RESERVATIONS): "there are no objects for reservations of gangs and drivers",
    Permission("delete", kinds.RESOURCE_RESERVATIONS): "there are no objects for reservations of gangs and drivers",
    Permission("get", kinds.JOBS): "pods do not wait for Jobs (scheduling.kubenexus.io/after), only for pods and gangs",
    Permission("create", kinds.EVENTS): "there are no events",
    Permission("patch", kinds.EVENTS): "events that repeat are not counted",
    Permission("patch", kinds.PERSISTENT_VOLUME_CLAIMS): "pods whose claims wait for a consumer are not bound",
    Permission("patch", kinds.RESOURCE_CLAIMS): "pods with device claims are not bound",
    Permission("patch", kinds.RESOURCE_CLAIMS, "status"): "pods with device claims are not bound",
    Permission("get", kinds.RESOURCE_CLAIMS): "a claim whose write had no answer is not looked at again",
    Permission("create", kinds.RESOURCE_CLAIMS): "pods that ask for a resource which a DeviceClass backs are not bound",
    Permission("delete", kinds.RESOURCE_CLAIMS): "claims made for pods that were not bound are left behind",
    Permission("patch", kinds.PERSISTENT_VOLUMES): "pods whose claims wait for a consumer are not bound",
}

# With `admissionChecks` of the arguments `Kueue` alone.
KUEUE_PERMISSIONS: Mapping[Permission, str] = dict.fromkeys(
    (
        Permission("get", kinds.KUEUE_WORKLOADS),
        Permission("patch", kinds.KUEUE_WORKLOADS, "status"),
        Permission("list", kinds.ADMISSION_CHECKS),
        Permission("patch", kinds.ADMISSION_CHECKS, "status"),
        Permission("list", kinds.RESOURCE_FLAVORS),
    ),
    "AdmissionChecks of the controller kubenexus.io/placement stay pending",
)

# With a `provisioningClassName` of the arguments `Coscheduling` alone.
PROVISIONING_PERMISSIONS: Mapping[Permission, str] = dict.fromkeys(
    (
        Permission("list", kinds.PROVISIONING_REQUESTS),
        Permission("create", kinds.PROVISIONING_REQUESTS),
        Permission("delete", kinds.PROVISIONING_REQUESTS),
        Permission("create", kinds.POD_TEMPLATES),
    ),
    "there are no ProvisioningRequests for gangs that do not fit",
)

# To answer readers of /metrics, and to look whether the namespace of the lease exists.
SERVING_PERMISSIONS: Sequence[Permission] = (
    Permission("create", kinds.TOKEN_REVIEWS),
    Permission("create", kinds.ACCESS_REVIEWS),
    Permission("get", kinds.NAMESPACES),
)


def required_permissions(watched: Iterable[ApiResource], terms: LeaseConfig | None) -> list[Permission]:
    """Returns the permissions without which the scheduler cannot work: to read the watched kinds, to bind, to hold the
    lease."""
    reads = [Permission(verb, kind) for kind in watched for verb in ("list", "watch")]
    return [*reads, Permission("create", kinds.PODS, "binding"), *_lease(terms)]


def _lease(terms: LeaseConfig | None) -> list[Permission]:
    if terms is None:
        return []
    named = [Permission(verb, kinds.LEASES, "", terms.namespace, terms.name) for verb in ("get", "update")]
    return [*named, Permission("create", kinds.LEASES, "", terms.namespace)]


async def missing_permissions(api: Api, permissions: Sequence[Permission]) -> list[Permission]:
    """Returns the permissions that the API server denies. If it does not answer a review, the permission counts as
    granted."""
    allowed = await asyncio.gather(*(_is_allowed(api, permission) for permission in permissions))
    return [permission for permission, is_allowed in zip(permissions, allowed, strict=True) if not is_allowed]


def losses(permissions: Iterable[Permission]) -> list[str]:
    """Returns what does not work without these permissions, each text once."""
    lost = {**OPTIONAL_PERMISSIONS, **KUEUE_PERMISSIONS, **PROVISIONING_PERMISSIONS}
    return list(dict.fromkeys(lost[each] for each in permissions if each in lost))


def missing_permissions_error(permissions: Sequence[Permission]) -> KubeNexusError:
    return KubeNexusError(f"the API server does not allow us to: {', '.join(map(str, permissions))}; {HELP}")


async def _is_allowed(api: Api, permission: Permission) -> bool:
    attributes = {
        "verb": permission.verb,
        "group": permission.resource.group,
        "resource": permission.resource.plural,
        "subresource": permission.part,
        "namespace": permission.namespace,
        "name": permission.name,
    }
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
    try:
        answer = await api.send(create(kinds.SELF_ACCESS_REVIEWS, body | {"spec": {"resourceAttributes": attributes}}))
        return msgspec.json.decode(answer, type=_Review).status.allowed
    except (ApiError, msgspec.DecodeError):
        return True
