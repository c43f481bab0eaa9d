"""Create and update, common to all kinds. Each returns a code and the object as stored."""

from collections.abc import Callable

import msgspec

from kubenexus.sim.apiserver import meta, names
from kubenexus.sim.apiserver.kinds import ServedKind
from kubenexus.sim.apiserver.object_store import NAMESPACES, ObjectStore, decode, encode
from kubenexus.sim.apiserver.rules import Rule, rule_of
from kubenexus.sim.apiserver.rules import resize as resizing
from kubenexus.sim.apiserver.status_errors import (
    FieldError,
    Json,
    already_exists,
    bad_request,
    conflict,
    forbidden_object,
    internal,
    invalid,
    invalid_object,
    modified,
    needs_version,
    not_found,
    required,
)

_NAMES = 7  # further draws before a generated name counts as taken

Result = tuple[int, bytes]
Change = Callable[[Json], Json]


class Target(msgspec.Struct, frozen=True):
    """The object, collection or subresource of a request."""

    kind: ServedKind
    namespace: str = ""
    name: str = ""
    sub: str = ""

    @property
    def key(self) -> str:
        return self.kind.key(self.namespace, self.name)


class WriteOptions(msgspec.Struct, frozen=True):
    """The options of a write."""

    dry_run: bool = False
    manager: str = ""
    force: bool = False
    put: bool = False  # the whole object was sent, not a patch


def create(core: ObjectStore, target: Target, item: Json, wish: WriteOptions) -> Result:
    """Creates an object. Raises StatusError. A generated name that is taken is drawn again, as a real server does."""
    kind, rule = target.kind, rule_of(target.kind)
    head = item.setdefault("metadata", {})
    _placed(target, head)
    if head.get("resourceVersion"):
        raise internal("resourceVersion should not be set on objects to be created")
    generated = not head.get("name") and bool(head.get("generateName"))
    meta.born(head, core.stamps)
    if generated:
        _unused_name(core, target, head)
    meta.tidied(head)
    if kind.namespaced:
        _namespace_open(core, target, head.get("name", ""))
    rule.default(item)
    rule.admit(item, core)
    _begin_status(rule, kind, item)
    if rule.generation:
        head["generation"] = 1
    _refuse(kind, head, _name_flaws(rule, head, generated) + names.check_meta(head) + rule.check(item))
    key = kind.key(target.namespace, head["name"])
    if core.store.get(kind.store, key) is not None:
        raise already_exists(kind, head["name"])
    if wish.dry_run:
        return 201, encode(item)
    return 201, core.write(kind, key, item)


def update(core: ObjectStore, target: Target, change: Change, wish: WriteOptions) -> Result:
    """Updates an object. `change` returns the new state; it may modify its argument, the old one. Raises
    StatusError."""
    kind, rule = target.kind, rule_of(target.kind)
    data = core.store.get(kind.store, target.key)
    if data is None:
        if wish.put and rule.create_on_update and not target.sub:
            return _create_by_put(core, target, change({}), wish)
        raise not_found(kind, target.name)
    old, new = decode(data), change(decode(data))
    _same_object(target, rule, new, old, wish)
    return finish(core, target, new, old, wish)


def finish(core: ObjectStore, target: Target, new: Json, old: Json, wish: WriteOptions) -> Result:
    """Checks the new state against the old one and writes it if it differs. Raises StatusError."""
    kind, rule = target.kind, rule_of(target.kind)
    new.pop("kind", None)
    new.pop("apiVersion", None)
    meta.kept(new["metadata"], old["metadata"])
    meta.tidied(new["metadata"])
    if target.sub == "status":
        new = _with_status(kind, new, old)
        rule.default(new)
        flaws = meta.check_change(new["metadata"], old["metadata"]) + rule.check_status(new, old)
    elif target.sub == "resize":
        new = resizing.resized(new, old)
        rule.default(new)
        flaws = rule.check(new) + resizing.check(new, old)
    else:
        flaws = _prepare(core, kind, rule, new, old)
    _refuse(kind, new["metadata"], flaws)
    new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
    if rule.generation and target.sub != "status" and rule.counted(new) != rule.counted(old):
        new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
    if new == old or wish.dry_run:
        return 200, encode(new)
    if _is_over(new):
        core.remove(kind, target.key, old)
        return 200, encode(new)
    return 200, core.write(kind, target.key, new)


def _prepare(core: ObjectStore, kind: ServedKind, rule: Rule, new: Json, old: Json) -> list[FieldError]:
    if "status" in kind.subresources:
        if "status" in old:
            new["status"] = old["status"]
        else:
            new.pop("status", None)
    rule.default(new)
    rule.admit_update(new, old, core)
    head = new["metadata"]
    flaws = meta.check_change(head, old["metadata"]) + names.check_meta(head)
    return flaws + rule.check(new) + rule.check_update(new, old)


def _create_by_put(core: ObjectStore, target: Target, item: Json, wish: WriteOptions) -> Result:
    head = item.setdefault("metadata", {})
    named(target, head)
    _placed(target, head)
    head.pop("resourceVersion", None)
    if head.get("uid"):
        raise wrong_uid(target, head["uid"], "")
    return create(core, target, item, wish)


# ---- steps -----------------------------------------------------------------------------------------------------------


def _placed(target: Target, head: Json) -> None:
    """Checks that the object's namespace, if set, is that of the request, and sets it."""
    said = head.get("namespace", "")
    if said and said != target.namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    if target.kind.namespaced:
        head["namespace"] = target.namespace
    else:
        head.pop("namespace", None)


def _unused_name(core: ObjectStore, target: Target, head: Json) -> None:
    tries = _NAMES
    while core.store.get(target.kind.store, target.kind.key(target.namespace, head["name"])) is not None and tries:
        head["name"], tries = head["generateName"] + core.stamps.suffix(), tries - 1


def _namespace_open(core: ObjectStore, target: Target, name: str) -> None:
    found = core.store.get(NAMESPACES, target.namespace)
    if found is None:
        raise not_found(_NAMESPACE, target.namespace)
    if b'"deletionTimestamp"' in found and decode(found)["metadata"].get("deletionTimestamp"):
        why = f"unable to create new content in namespace {target.namespace} because it is being terminated"
        cause = {
            "reason": "NamespaceTerminating",
            "message": f"namespace {target.namespace} is being terminated",
            "field": "metadata.namespace",
        }
        raise forbidden_object(target.kind, name, why, [cause])


_NAMESPACE = ServedKind("v1", "namespaces", "Namespace", scope="Cluster")


def _begin_status(rule: Rule, kind: ServedKind, item: Json) -> None:
    if rule.status is not None:
        item["status"] = rule.status(item)
    elif kind.custom is not None and "status" in kind.subresources:
        item.pop("status", None)


def _name_flaws(rule: Rule, head: Json, generated: bool) -> list[FieldError]:
    name = head.get("name", "")
    if not name:
        return [required("metadata.name", "name or generateName is required")]
    why = rule.name(name)
    if not why:
        return []
    flaws = [invalid("metadata.generateName", head["generateName"], why)] if generated else []
    return [*flaws, invalid("metadata.name", name, why)]


def _refuse(kind: ServedKind, head: Json, flaws: list[FieldError]) -> None:
    if flaws:
        raise invalid_object(kind, head.get("name", ""), flaws)


def _same_object(target: Target, rule: Rule, new: Json, old: Json, wish: WriteOptions) -> None:
    """Checks name, namespace, uid and resourceVersion of the new state against the old one."""
    head = new.setdefault("metadata", {})
    named(target, head)
    _placed(target, head)
    if wish.put and head.get("uid") and head["uid"] != old["metadata"]["uid"]:
        raise wrong_uid(target, head["uid"], old["metadata"]["uid"])
    version = head.get("resourceVersion", "")
    if not version:
        if wish.put and not rule.unconditional:
            raise needs_version(target.kind, target.name)
    elif not version.isdigit():
        raise internal(f'strconv.ParseUint: parsing "{version}": invalid syntax')
    elif version not in {"0", old["metadata"]["resourceVersion"]}:
        raise modified(target.kind, target.name)


def named(target: Target, head: Json) -> None:
    name = head.get("name", "")
    if not name:
        raise bad_request(
            f"the name of the object ({target.name} based on URL) was undeterminable: name must be provided"
        )
    if name != target.name:
        raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({target.name})")


def wrong_uid(target: Target, wanted: str, found: str) -> Exception:
    why = (
        f"StorageError: invalid object, Code: 4, Key: /registry/{target.kind.resource}/{target.key}, "
        f"ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {wanted}, "
        f"UID in object meta: {found}"
    )
    return conflict(target.kind, target.name, why)


def _with_status(kind: ServedKind, new: Json, old: Json) -> Json:
    """Returns the old object with the new status and, except for custom resources, the new labels and annotations."""
    mixed = dict(old)
    mixed["metadata"] = dict(old["metadata"]) if kind.custom is not None else new["metadata"]
    if "ownerReferences" in old["metadata"]:
        mixed["metadata"]["ownerReferences"] = old["metadata"]["ownerReferences"]
    if "status" in new:
        mixed["status"] = new["status"]
    else:
        mixed.pop("status", None)
    return mixed


def _is_over(item: Json) -> bool:
    """Whether the object was deleted and no finalizer or grace period is left."""
    head = item["metadata"]
    return (
        "deletionTimestamp" in head
        and not head.get("finalizers")
        and not head.get("deletionGracePeriodSeconds")
        and not (item.get("spec") or {}).get("finalizers")
    )
