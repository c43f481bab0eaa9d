"""Validates objects before they are stored: refuses or warns, with the key, its value and what was expected.

What was there before is never refused: an update that leaves a wrong value as it was only warns, and so does any
update of a Node. Objects that a controller makes are not looked at, since their templates were.
"""

from typing import Final

import msgspec

from kubenexus.api.codec import from_data
from kubenexus.api.reservations.request import request_of
from kubenexus.api.reservations.resource_reservation import ResourceReservation
from kubenexus.base.errors import Malformed
from kubenexus.webhook.admission import ALLOWED, AdmissionRequest, Object, Response, items, refusal, text, texts
from kubenexus.webhook.gang_check import check_gangs
from kubenexus.webhook.key_check import Finding, check_keys, check_owner_keys
from kubenexus.webhook.pod_sets import MAX_POD_SETS, makes_pods, pod_sets

# Beside those that make pods, by group and kind.
OTHER_KINDS: Final = {
    ("", "Namespace"),
    ("", "Node"),
    ("kueue.x-k8s.io", "LocalQueue"),
    ("kueue.x-k8s.io", "ClusterQueue"),
}
RESERVATION: Final = ("scheduling.kubenexus.io", "ResourceReservation")
_NEVER_REFUSED: Final = {("", "Node")}  # a kubelet could not register


class ValidationSettings(msgspec.Struct, frozen=True):
    """`only_warn`: nothing is refused. `strict_gangs`: all members of a gang are in one object."""

    only_warn: bool = False
    strict_gangs: bool = False


def validate(request: AdmissionRequest, settings: ValidationSettings) -> Response:
    """Returns the verdict on an object that is created or updated. Pure; the work is bounded by the object's size."""
    data = request.object
    if request.operation not in ("CREATE", "UPDATE") or request.sub_resource or not isinstance(data, dict):
        return ALLOWED
    if text(data, "metadata", "deletionTimestamp") or has_controller(data):
        return ALLOWED
    identity = (request.kind.group, request.kind.kind)
    found = _findings(identity, data, request.namespace or "", settings)
    if not found:
        return ALLOWED
    before: set[str] = set()
    if isinstance(request.old_object, dict):
        before = {each.text for each in _findings(identity, request.old_object, request.namespace or "", settings)}
    lenient = settings.only_warn or identity in _NEVER_REFUSED
    refuses = [each.text for each in found if each.refuses and not lenient and each.text not in before]
    warns = [each.text for each in found if each.text not in refuses]
    return refusal(refuses, warns)


def has_controller(data: Object) -> bool:
    """Whether a controller made the object."""
    owners = items(data, "metadata", "ownerReferences")
    return any(isinstance(each, dict) and each.get("controller") is True for each in owners)


def _findings(identity: tuple[str, str], data: Object, namespace: str, settings: ValidationSettings) -> list[Finding]:
    kind = identity[1]
    if identity == ("", "Pod"):
        return _pod_findings(identity, data, namespace, settings)
    labels, annotations = texts(data, "metadata", "labels"), texts(data, "metadata", "annotations")
    if makes_pods(*identity):
        return [*check_owner_keys(kind, labels, annotations), *_pod_findings(identity, data, namespace, settings)]
    if identity == RESERVATION:
        return [*check_keys(kind, labels, annotations), *_reservation(data)]
    return check_keys(kind, labels, annotations) if identity in OTHER_KINDS else []


def _pod_findings(
    identity: tuple[str, str], data: Object, namespace: str, settings: ValidationSettings
) -> list[Finding]:
    sets, found = pod_sets(*identity, data), list[Finding]()
    if len(sets) > MAX_POD_SETS:
        found.append(Finding(f"only the first {MAX_POD_SETS} pod templates are checked"))
        del sets[MAX_POD_SETS:]
    for each in sets:
        prefix = "" if each.where == "metadata" else f"{each.where}: "
        keys = check_keys("Pod", each.labels, each.annotations)
        found += [Finding(prefix + problem.text, problem.refuses) for problem in keys]
    return [*found, *check_gangs(identity[1], namespace, sets, strict=settings.strict_gangs)]


def _reservation(data: Object) -> list[Finding]:
    try:
        request_of(from_data(data, ResourceReservation))
    except Malformed as problem:
        return [Finding(str(problem), refuses=True)]
    return []
