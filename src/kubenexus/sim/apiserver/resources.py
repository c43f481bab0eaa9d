"""Requests about objects: selects the verb by target and method, and turns its result into a response."""

from collections.abc import Callable

from kubenexus.sim.apiserver import (
    deleting,
    listing,
    patching,
    protobuf,
    request_bodies,
    reviews,
    subresources,
    tables,
    verbs,
)
from kubenexus.sim.apiserver.http_types import Request, Response, answer
from kubenexus.sim.apiserver.kinds import ServedKind, names
from kubenexus.sim.apiserver.object_store import ObjectStore, decode, encode, shown
from kubenexus.sim.apiserver.patches import json_patch, merge
from kubenexus.sim.apiserver.status_errors import Json, StatusError, bad_request, internal, not_allowed, not_found
from kubenexus.sim.apiserver.verbs import Target
from kubenexus.sim.apiserver.watching import Watch

_VERBS = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


class Resources:
    """Serves all paths below a group and version. Raises StatusError."""

    def __init__(self, core: ObjectStore) -> None:
        self._core = core
        self._special: dict[str, Callable[[Target, Request], Response]] = {
            "binding": self._binding,
            "eviction": self._eviction,
            "scale": self._scale,
            "finalize": self._finalize,
        }

    def serve(self, target: Target, request: Request) -> Response:
        kind, method = target.kind, request.method
        _allowed(target, _VERBS.get(method, ""))
        if target.sub and target.sub in self._special:
            return self._special[target.sub](target, request)
        if not target.name:
            return self._collection(target, request)
        if method == "GET":
            return self._get(target, request)
        if method == "PUT":
            return self._put(target, request)
        if method == "PATCH":
            return _written(kind, *patching.patch(self._core, target, request), request)
        return self._delete(target, request)

    # ---- collections -------------------------------------------------------------------------------------------------

    def _collection(self, target: Target, request: Request) -> Response:
        kind = target.kind
        if request.method == "POST":
            return self._create(target, request)
        query = listing.read_query(request.query)
        if request.method == "DELETE":
            return self._delete_many(target, request, query)
        if query.watch:
            scope = f"{target.namespace}/" if target.namespace else ""
            return self._watch(kind, scope, query, request)
        page = listing.page(self._core, kind, target.namespace, query)
        if tables.wanted(request):
            return answer(200, tables.of_page(kind, page, request, self._core.stamps.clock.now()))
        return Response(200, listed(kind, page))

    def _create(self, target: Target, request: Request) -> Response:
        kind = target.kind
        if kind.resource in reviews.REVIEWS:
            return answer(201, reviews.review(kind, request_bodies.item(self._core.registry, kind, request)))
        if kind.resource == "bindings":
            return self._bindings(target, request)
        item = request_bodies.item(self._core.registry, kind, request)
        wish = request_bodies.wish(request, "CreateOptions")
        return _written(kind, *verbs.create(self._core, target, item, wish), request)

    def _delete_many(self, target: Target, request: Request, query: listing.Query) -> Response:
        options = deleting.read_options(request)
        page = listing.page(self._core, target.kind, target.namespace, query)
        deleting.delete_many(self._core, target.kind, [key for key, _ in page.items], options)
        return Response(200, listed(target.kind, page))

    def _watch(self, kind: ServedKind, scope: str, query: listing.Query, request: Request) -> Response:
        render = tables.renderer(kind, request, self._core.stamps.clock.now) if tables.wanted(request) else None
        return Response(200, watch=Watch(self._core, kind, scope, query, render))

    # ---- single objects ----------------------------------------------------------------------------------------------

    def _get(self, target: Target, request: Request) -> Response:
        kind, version = target.kind, request.query.get("resourceVersion", "")
        if request.query.get("watch") in {"1", "true"}:
            return self._watch(kind, target.key, listing.read_query(request.query), request)
        if version and not version.isdigit():
            why = f'strconv.ParseUint: parsing "{version}": invalid syntax'
            raise internal(f'resourceVersion: Invalid value: "{version}": {why}')
        if version and int(version) > self._core.store.version:
            raise listing.too_large(self._core, int(version))
        data = self._core.store.get(kind.store, target.key)
        if data is None:
            raise not_found(kind, target.name)
        return _written(kind, 200, data, request, self._core.stamps.clock.now())

    def _put(self, target: Target, request: Request) -> Response:
        item = request_bodies.item(self._core.registry, target.kind, request)
        wish = request_bodies.wish(request, "UpdateOptions", put=True)
        verbs.named(target, item.setdefault("metadata", {}))
        change = patching.owned(self._core, target, lambda _: item, wish)
        return _written(target.kind, *verbs.update(self._core, target, change, wish), request)

    def _delete(self, target: Target, request: Request) -> Response:
        options = deleting.read_options(request)
        code, data, is_object = deleting.delete(self._core, target, options)
        return _written(target.kind, code, data, request) if is_object else Response(code, data)

    # ---- subresources ------------------------------------------------------------------------------------------------

    def _binding(self, target: Target, request: Request) -> Response:
        wish = request_bodies.wish(request, "CreateOptions")
        return answer(201, subresources.bind(self._core, target, _plain(request), wish))

    def _bindings(self, target: Target, request: Request) -> Response:
        """Serves the older path of bindings: the body names the pod."""
        pods = self._core.registry.find("v1", "pods")
        assert pods is not None
        binding = _plain(request)
        name = (binding.get("metadata") or {}).get("name", "")
        wish = request_bodies.wish(request, "CreateOptions")
        return answer(201, subresources.bind(self._core, Target(pods, target.namespace, name), binding, wish))

    def _eviction(self, target: Target, request: Request) -> Response:
        wish = request_bodies.wish(request, "CreateOptions")
        return answer(201, subresources.evict(self._core, target, _plain(request), wish))

    def _scale(self, target: Target, request: Request) -> Response:
        seen = subresources.read_scale(self._core, target)
        if request.method == "GET":
            return answer(200, seen)
        if request.method == "PATCH":
            patch = json_patch.apply if "json-patch" in request.header("content-type") else merge.apply
            wanted = patch(seen, decode(request.body))
        else:
            wanted = _plain(request)
        return answer(
            200, subresources.write_scale(self._core, target, wanted, request_bodies.wish(request, "UpdateOptions"))
        )

    def _finalize(self, target: Target, request: Request) -> Response:
        item = request_bodies.item(self._core.registry, target.kind, request)
        finalizers = (item.get("spec") or {}).get("finalizers") or []
        return _written(target.kind, *deleting.finalize(self._core, target, finalizers), request)


def _allowed(target: Target, verb: str) -> None:
    """Raises StatusError (405) if the target does not support the verb."""
    if target.sub:
        verbs_known = target.kind.subresources[target.sub].verbs
    elif target.name:
        verbs_known = tuple(each for each in target.kind.verbs if each not in {"create", "list", "deletecollection"})
    else:
        on_many = {"get": "list", "delete": "deletecollection", "create": "create"}
        verb, verbs_known = on_many.get(verb, ""), target.kind.verbs
    in_all = target.kind.namespaced and not target.namespace and (target.name or verb != "list")
    if verb not in verbs_known or in_all:
        raise not_allowed()


def listed(kind: ServedKind, page: listing.Page) -> bytes:
    """Returns the encoded list. Stored objects are joined without decoding."""
    meta: Json = {"resourceVersion": str(page.version)}
    if page.next:
        meta["continue"] = page.next
        if page.left is not None:
            meta["remainingItemCount"] = page.left
    items = [shown(kind, data) for _, data in page.items]
    if kind.custom is not None:
        head = names(kind).head
        items = [head + data[1:] for data in items]
    return b'%b"metadata":%b,"items":[%b]}' % (names(kind).list_head, encode(meta), b",".join(items))


def _written(kind: ServedKind, code: int, data: bytes, request: Request, now: float | None = None) -> Response:
    if tables.wanted(request):
        return answer(code, tables.of_object(kind, data, request, now))
    return Response(code, names(kind).head + shown(kind, data)[1:])


def _plain(request: Request) -> Json:
    if request.header("content-type").startswith(protobuf.CONTENT):
        return protobuf.decode(request.body)
    try:
        found = request_bodies.from_yaml(request.body)
    except StatusError:
        found = None
    if not isinstance(found, dict):
        raise bad_request("the object provided is unrecognized: couldn't get version/kind; json parse error")
    return found
