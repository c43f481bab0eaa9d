"""Reads a live cluster through its API into the same form as a dump, with the permissions of the reader."""

import asyncio
from collections.abc import Collection

import msgspec

from kubenexus.api.codec import from_json
from kubenexus.api.meta import ApiObject
from kubenexus.app.watch.informers import FALLBACK_VERSIONS, OPTIONAL, WATCHED_KINDS
from kubenexus.base.errors import KubeNexusError
from kubenexus.client.calls import Api, ApiError
from kubenexus.client.kinds import LIVE_PODS_FIELD_SELECTOR, NODES, PODS, ApiResource
from kubenexus.client.verbs import list_call
from kubenexus.explain.cluster_dump import ClusterDump, Item, build_dump
from kubenexus.state.object_kinds import GROUP_KINDS, kind_name

PAGE = 500
MAX_PAGES = 10_000  # of one kind: five million objects
_NEEDED = frozenset({NODES, PODS})
_NOT_SERVED = 404


class _ListMeta(ApiObject):
    continue_: str = msgspec.field(default="", name="continue")


class _RawList(ApiObject):
    metadata: _ListMeta = _ListMeta()
    items: list[msgspec.Raw] | None = None


async def read_cluster(api: Api, own_tier: Collection[str] = ()) -> ClusterDump:
    """Lists all kinds that decisions depend on. Raises KubeNexusError if nodes or pods cannot be listed; another kind
    that cannot be listed is a problem of the result, since decisions may depend on it."""
    answers = await asyncio.gather(*(_kind(api, resource) for resource in WATCHED_KINDS))
    items = [item for found, _ in answers for item in found]
    dump = build_dump(items, own_tier)
    for resource, (_, problem) in zip(WATCHED_KINDS, answers, strict=True):
        if problem:
            dump.problems.append(f"cannot list {resource}: {problem}; decisions of the scheduler may differ")
            name = kind_name(resource.kind, resource.group)
            if name in GROUP_KINDS:
                dump.ledger.groups.unlisted(name)
    return dump


async def _kind(api: Api, resource: ApiResource) -> tuple[list[Item], str]:
    """Returns the objects of a kind, in the first version that is served, or why it cannot be listed."""
    for version in (resource, *FALLBACK_VERSIONS.get(resource, ())):
        try:
            return await _pages(api, version), ""
        except ApiError as error:
            if error.code == _NOT_SERVED and resource in OPTIONAL:
                continue
            if resource in _NEEDED:
                raise KubeNexusError(f"cannot list {resource}: {error}") from None
            return [], str(error)
    return [], ""


async def _pages(api: Api, resource: ApiResource) -> list[Item]:
    kind = kind_name(resource.kind, resource.group)
    fields = LIVE_PODS_FIELD_SELECTOR if resource is PODS else ""
    found: list[Item] = []
    more = ""
    for _ in range(MAX_PAGES):
        raw = await api.send(list_call(resource, limit=PAGE, more=more, fields=fields), timeout=60.0)
        page = from_json(raw, _RawList)
        found += ((kind, item) for item in page.items or ())
        more = page.metadata.continue_
        if not more:
            return found
    raise KubeNexusError(f"cannot list {resource}: more than {MAX_PAGES} pages")
