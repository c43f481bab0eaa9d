"""The objects that ask for nodes: a ProvisioningRequest, and a PodTemplate for each class of pods. Pure."""

import hashlib
import re
from typing import Any, Final, NamedTuple

from kubenexus.api.core import Pod
from kubenexus.api.keys import gang
from kubenexus.api.meta import ApiObject
from kubenexus.api.reservations.resource_reservation import MANAGER
from kubenexus.client.kinds import POD_TEMPLATES, PROVISIONING_REQUESTS, ApiResource

OURS: Final = f"{gang.RESERVATION_OWNER.key}={MANAGER}"  # the label by which our objects are found
# What no template may have, or what is of one pod alone.
_OF_A_POD: Final = ("nodeName", "hostname", "subdomain", "ephemeralContainers", "schedulingGates", "schedulingGroup")
_MAX_NAME: Final = 200  # characters of a gang's name
_PLAIN: Final = re.compile(rf"(?=.{{1,{_MAX_NAME}}}$)[a-z0-9]+(?:(?:-+|[.])[a-z0-9]+)*", re.ASCII)
_OTHER: Final = re.compile(r"[^a-z0-9]+")


class _Meta(ApiObject):
    uid: str = ""
    labels: dict[str, str] = {}


class PodTemplateSource(ApiObject):
    """A pod as the API server has it: what becomes a template."""

    metadata: _Meta = _Meta()
    spec: dict[str, Any] = {}


class Member(NamedTuple):
    """A pod as the API server has it, and how many are like it."""

    pod: PodTemplateSource
    number: int


def request_name(group: str) -> str:
    """Returns the name of the objects of a gang: always the same, so that no second request is made. `NAME-nodes` for a
    gang NAME. Labels name gangs more freely than objects may be: then a hash follows, so that no two gangs share it."""
    if _PLAIN.fullmatch(group):
        return f"{group}-nodes"
    cleaned = _OTHER.sub("-", group[:_MAX_NAME].lower()).strip("-") or "gang"
    return f"{cleaned}-{hashlib.blake2b(group.encode(), digest_size=5).hexdigest()}-nodes"


def pod_template(name: str, member: Member, namespace: str, request: str, uid: str) -> dict[str, Any]:
    """Returns the template of a class of pods, which a request owns."""
    spec = {field: value for field, value in member.pod.spec.items() if field not in _OF_A_POD}
    labels = member.pod.metadata.labels
    owner = {"apiVersion": PROVISIONING_REQUESTS.api_version, "kind": PROVISIONING_REQUESTS.kind}
    body = _body(POD_TEMPLATES, name, namespace, owner | {"name": request, "uid": uid})
    return body | {"template": {"metadata": {"labels": labels}, "spec": spec}}


def provisioning_request(name: str, counts: list[int], provisioning_class: str, owner: Pod) -> dict[str, Any]:
    """Returns the request for so many pods of each template."""
    sets = [{"count": count, "podTemplateRef": {"name": f"{name}-{i}"}} for i, count in enumerate(counts)]
    spec = {"provisioningClassName": provisioning_class, "podSets": sets}
    meta = owner.metadata
    reference = {"apiVersion": "v1", "kind": "Pod", "name": meta.name, "uid": meta.uid}
    return _body(PROVISIONING_REQUESTS, name, meta.namespace, reference) | {"spec": spec}


def _body(kind: ApiResource, name: str, namespace: str, owner: dict[str, str]) -> dict[str, Any]:
    labels = {gang.RESERVATION_OWNER.key: MANAGER}
    meta = {"name": name, "namespace": namespace, "labels": labels, "ownerReferences": [owner]}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta}
