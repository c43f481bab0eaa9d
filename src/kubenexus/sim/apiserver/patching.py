"""PATCH requests: selects the patch format and applies it."""

from collections.abc import Callable
from typing import Any

import msgspec

from kubenexus.sim.apiserver import request_bodies, schemas, typed_objects, verbs
from kubenexus.sim.apiserver.http_types import Request
from kubenexus.sim.apiserver.kinds import ServedKind
from kubenexus.sim.apiserver.object_store import ObjectStore, kept
from kubenexus.sim.apiserver.patches import apply, json_patch, merge, strategic
from kubenexus.sim.apiserver.rules.events import outward
from kubenexus.sim.apiserver.status_errors import FieldError, Json, StatusError, bad_request, invalid_options, required
from kubenexus.sim.apiserver.verbs import Result, Target, WriteOptions

JSON_PATCH = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"


def patch(core: ObjectStore, target: Target, request: Request) -> Result:
    """Applies the patch of a request. Raises StatusError."""
    content = request.header("content-type").partition(";")[0].strip()
    wish = request_bodies.wish(request, "PatchOptions")
    if content == APPLY:
        return _apply(core, target, request, wish)
    change = _change(target.kind, content, request.body)

    def changed(old: Json) -> Json:
        return _checked(target.kind, change(_seen(target.kind, old)), request)

    return verbs.update(core, target, owned(core, target, changed, wish), wish)


def _seen(kind: ServedKind, old: Json) -> Json:
    """Returns the object as the client sees it, with `kind` and `apiVersion`, which a patch may contain."""
    item = outward(old) if kind.group == "events.k8s.io" else old
    return {"kind": kind.kind, "apiVersion": kind.group_version, **item}


def _change(kind: ServedKind, content: str, body: bytes) -> Callable[[Json], Json]:
    known = {JSON_PATCH: json_patch.apply, MERGE: merge.apply}
    if content == STRATEGIC and kind.custom is None:
        return lambda old: strategic.apply(old, _decoded(body), schemas.schema_of(kind))
    if content not in known:
        raise StatusError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})
    chosen = known[content]
    return lambda old: chosen(old, _decoded(body))


def _decoded(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError:
        raise bad_request("invalid JSON patch") from None


def _checked(kind: ServedKind, item: Json, request: Request) -> Json:
    """Checks that the result is an object of the kind; otherwise the patch is invalid."""
    try:
        if (item.get("kind"), item.get("apiVersion")) != (kind.kind, kind.group_version):
            raise bad_request("the kind of an object cannot be changed")
        if request.query.get("fieldValidation") == "Strict":
            request_bodies.strict(kind, item)
        return kept(kind, typed_objects.convert(kind, item))
    except StatusError as refusal:
        flaw = FieldError("patch", "FieldValueInvalid", f'Invalid value: "...": {refusal.message}')
        raise strategic.invalid_patch(flaw) from None


def owned(core: ObjectStore, target: Target, change: verbs.Change, wish: WriteOptions) -> verbs.Change:
    """Wraps a change so that it updates managedFields of an object that was applied before."""

    def noted(old: Json) -> Json:
        if not (old.get("metadata") or {}).get("managedFields"):
            return change(old)
        before = msgspec.json.decode(msgspec.json.encode(old))
        new = change(old)
        entry = {"manager": wish.manager or "unknown", "apiVersion": target.kind.group_version, "time": core.now()}
        apply.updated(new, before, schemas.schema_of(target.kind), entry)
        return new

    return noted


# ---- server-side apply -----------------------------------------------------------------------------------------------


def _apply(core: ObjectStore, target: Target, request: Request, wish: WriteOptions) -> Result:
    kind = target.kind
    if not wish.manager:
        raise invalid_options("PatchOptions", required("fieldManager", "is required for apply patch"))
    seen = request_bodies.from_yaml(request.body)
    if not isinstance(seen, dict) or not seen.get("kind") or not seen.get("apiVersion"):
        raise bad_request("error decoding YAML: Object 'Kind' is missing")
    wanted = request_bodies.decoded(core.registry, kind, seen, request)
    if (wanted.get("metadata") or {}).get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")
    schema = schemas.schema_of(kind)

    def change(old: Json) -> Json:
        made = apply.Applied(old or None, wanted, schema, wish.manager, target.sub)
        return made.result(kind.group_version, core.now(), force=wish.force)

    if core.store.get(kind.store, target.key) is None and not target.sub:
        return _create(core, target, change({}), wish)
    return verbs.update(core, target, change, wish)


def _create(core: ObjectStore, target: Target, item: Json, wish: WriteOptions) -> Result:
    head = item.setdefault("metadata", {})
    if head.setdefault("name", target.name) != target.name:
        raise bad_request(f"the name of the object ({head['name']}) does not match the name on the URL ({target.name})")
    if head.get("uid"):
        raise verbs.wrong_uid(target, head["uid"], "")
    return verbs.create(core, target, item, wish)
