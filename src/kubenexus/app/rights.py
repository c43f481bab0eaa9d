"""What we have to be allowed, asked at the start: one clear line then instead of a refusal at three in the morning."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from kubenexus.api.meta import Object
from kubenexus.app.lease import Terms
from kubenexus.base.errors import KubeNexusError
from kubenexus.client import kinds
from kubenexus.client.calls import Api, ApiError
from kubenexus.client.kinds import Resource
from kubenexus.client.verbs import create

HELP = "deploy/kubenexus-scheduler.yaml has the roles that the scheduler needs"


class Deed(NamedTuple):
    """Something that one may be allowed to do."""

    verb: str
    resource: Resource
    part: str = ""
    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        what = f"{self.resource}/{self.part}" if self.part else str(self.resource)
        return f"{self.verb} {what}" + (f" in {self.namespace}" if self.namespace else "")


class _Verdict(Object):
    allowed: bool = False


class _Review(Object):
    status: _Verdict = _Verdict()


# Without these pods are bound all the same. The warning at the start says what is lost.
USEFUL: Mapping[Deed, str] = {
    Deed("get", kinds.PODS): "a bind without an answer keeps its room until the watch says what happened",
    Deed("patch", kinds.PODS, "status"): "pods do not say why they wait",
    Deed("create", kinds.PODS, "eviction"): "a gang that stays incomplete is never released",
    Deed("patch", kinds.POD_GROUPS, "status"): "pod groups do not say why they wait",
    Deed("create", kinds.EVENTS): "there are no events",
    Deed("patch", kinds.EVENTS): "events that repeat are not counted",
    Deed("patch", kinds.PERSISTENT_VOLUME_CLAIMS): "pods whose claims wait for a consumer are not bound",
    Deed("patch", kinds.PERSISTENT_VOLUMES): "pods whose claims wait for a consumer are not bound",
}


def needed(watched: Iterable[Resource], terms: Terms | None) -> list[Deed]:
    """What nothing works without."""
    reads = [Deed(verb, kind) for kind in watched for verb in ("list", "watch")]
    return [*reads, Deed("create", kinds.PODS, "binding"), *_lease(terms)]


def _lease(terms: Terms | None) -> list[Deed]:
    if terms is None:
        return []
    named = [Deed(verb, kinds.LEASES, "", terms.namespace, terms.name) for verb in ("get", "update")]
    return [*named, Deed("create", kinds.LEASES, "", terms.namespace)]


async def lacking(api: Api, deeds: Sequence[Deed]) -> list[Deed]:
    """Those we may not do. A server that does not answer such questions is taken to allow them all."""
    allowed = await asyncio.gather(*(_may(api, deed) for deed in deeds))
    return [deed for deed, may in zip(deeds, allowed, strict=True) if not may]


def losses(deeds: Iterable[Deed]) -> list[str]:
    """What is lost without these, each loss once."""
    return list(dict.fromkeys(USEFUL[deed] for deed in deeds if deed in USEFUL))


def complaint(deeds: Sequence[Deed]) -> KubeNexusError:
    return KubeNexusError(f"the API server does not allow us to: {', '.join(map(str, deeds))}; {HELP}")


async def _may(api: Api, deed: Deed) -> bool:
    asked = {
        "verb": deed.verb,
        "group": deed.resource.group,
        "resource": deed.resource.plural,
        "subresource": deed.part,
        "namespace": deed.namespace,
        "name": deed.name,
    }
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
    try:
        answer = await api.send(create(kinds.SELF_ACCESS_REVIEWS, body | {"spec": {"resourceAttributes": asked}}))
        return msgspec.json.decode(answer, type=_Review).status.allowed
    except (ApiError, msgspec.DecodeError):
        return True
