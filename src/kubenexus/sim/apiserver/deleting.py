"""Deletion: at once, after a grace period that node agents wait for, or when the last finalizer is gone."""

from collections.abc import Iterable

import msgspec

from kubenexus.base.errors import Malformed
from kubenexus.sim.apiserver import protobuf
from kubenexus.sim.apiserver.http_types import Request
from kubenexus.sim.apiserver.kinds import ServedKind
from kubenexus.sim.apiserver.object_store import ObjectStore, decode, encode
from kubenexus.sim.apiserver.rules import rule_of
from kubenexus.sim.apiserver.status_errors import (
    FieldError,
    Json,
    StatusError,
    bad_request,
    conflict,
    forbidden_object,
    invalid,
    invalid_options,
    not_found,
    unsupported,
)
from kubenexus.sim.apiserver.verbs import Result, Target

_POLICIES = ("Foreground", "Background", "Orphan")
_FINALIZERS = {"Foreground": "foregroundDeletion", "Orphan": "orphan"}
_ETERNAL = {"default", "kube-system", "kube-public"}
_ORPHANING = {"jobs.batch", "replicationcontrollers"}


class Preconditions(msgspec.Struct):
    uid: str | None = None
    resourceVersion: str | None = None  # noqa: N815 - the API's name


class DeleteOptions(msgspec.Struct):
    """The options of a delete request, from its body or its query."""

    kind: str = "DeleteOptions"
    apiVersion: str = "v1"  # noqa: N815
    gracePeriodSeconds: int | None = None  # noqa: N815
    preconditions: Preconditions | None = None
    orphanDependents: bool | None = None  # noqa: N815
    propagationPolicy: str | None = None  # noqa: N815
    dryRun: list[str] | None = None  # noqa: N815


def read_options(request: Request) -> DeleteOptions:
    """Reads the options of a delete request. Raises StatusError."""
    body, query = request.body, request.query
    try:
        if body and request.header("content-type").startswith(protobuf.CONTENT):  # typed clients, such as helm's
            options = msgspec.convert(protobuf.decode(body), DeleteOptions)
        else:
            options = msgspec.json.decode(body, type=DeleteOptions) if body.strip() else DeleteOptions()
    except (msgspec.DecodeError, Malformed) as error:
        raise bad_request(f"couldn't get version/kind; json parse error: {error}") from None
    if options.kind != "DeleteOptions":
        told = f'no kind "{options.kind}" is registered for version "{options.apiVersion}"'
        raise bad_request(f'{told} in scheme "pkg/runtime/scheme.go:111"')
    if "gracePeriodSeconds" in query and options.gracePeriodSeconds is None:
        options.gracePeriodSeconds = _seconds(query["gracePeriodSeconds"])
    options.propagationPolicy = options.propagationPolicy or query.get("propagationPolicy")
    if query.get("dryRun"):
        options.dryRun = [query["dryRun"]]
    _check(options)
    return options


def _seconds(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None


def _check(options: DeleteOptions) -> None:
    policy = options.propagationPolicy
    flaw: FieldError | None = None
    if policy is not None and options.orphanDependents is not None:
        why = "orphanDependents and deletionPropagation cannot be both set"
        flaw = invalid("propagationPolicy", policy, why)
    elif policy is not None and policy not in _POLICIES:
        flaw = unsupported("propagationPolicy", policy, (*_POLICIES, "nil"))
    elif options.dryRun and options.dryRun != ["All"]:
        flaw = unsupported("dryRun", options.dryRun, ("All",))
    if flaw is not None:
        raise invalid_options("DeleteOptions", flaw)


def delete(core: ObjectStore, target: Target, options: DeleteOptions) -> tuple[int, bytes, bool]:
    """Deletes one object. Returns the code, the object or a Status, and whether it is an object. Raises StatusError."""
    kind = target.kind
    data = core.store.get(kind.store, target.key)
    if kind.store == "namespaces" and target.name in _ETERNAL:
        raise forbidden_object(kind, target.name, "this namespace may not be deleted")
    if data is None:
        raise not_found(kind, target.name)
    item = decode(data)
    _fits(kind, item, options)
    rule = rule_of(kind)
    ended = (
        _delete_namespace(core, target, item) if kind.store == "namespaces" else _delete(core, target, item, options)
    )
    if ended and not rule.returns_deleted:
        return 200, encode(_success(kind, item)), False
    return 200, encode(item), True


def delete_many(core: ObjectStore, kind: ServedKind, keys: Iterable[str], options: DeleteOptions) -> None:
    """Deletes those of `keys` that still exist. The first refusal ends the whole request."""
    for key in list(keys):
        namespace, _, name = key.rpartition("/")
        try:
            delete(core, Target(kind, namespace, name), options)
        except StatusError as refusal:
            if refusal.code != 404:
                raise


def _fits(kind: ServedKind, item: Json, options: DeleteOptions) -> None:
    wanted, head = options.preconditions, item["metadata"]
    if wanted is None:
        return
    if wanted.uid is not None and wanted.uid != head["uid"]:
        why = (
            f"the UID in the precondition ({wanted.uid}) does not match the UID in record ({head['uid']}). "
            "The object might have been deleted and then recreated"
        )
        raise conflict(kind, head["name"], why, kind.kind)
    if wanted.resourceVersion is not None and wanted.resourceVersion != head["resourceVersion"]:
        why = (
            f"the ResourceVersion in the precondition ({wanted.resourceVersion}) does not match the ResourceVersion in "
            f"record ({head['resourceVersion']}). The object might have been modified"
        )
        raise conflict(kind, head["name"], why, kind.kind)


def _delete(core: ObjectStore, target: Target, item: Json, options: DeleteOptions) -> bool:
    """Marks the object as deleted, and removes it if there is no finalizer and no grace period. Changes `item`.

    Returns whether the object is gone.
    """
    kind, head = target.kind, item["metadata"]
    before = encode(item)
    _propagation(kind, head, options)
    graceful = rule_of(kind).graceful
    wait = _grace(item, options) if graceful else 0
    # An object without grace period and finalizers is removed without a deletion timestamp.
    if graceful or head.get("finalizers"):
        _mark(core, head, wait, wait == 0 and not graceful)
    gone = not head.get("finalizers") and not head.get("deletionGracePeriodSeconds")
    if options.dryRun:
        return gone
    if encode(item) != before:
        core.write(kind, target.key, item)
    if gone:
        core.remove(kind, target.key, item)
    return gone


def _propagation(kind: ServedKind, head: Json, options: DeleteOptions) -> None:
    policy = options.propagationPolicy
    if policy is None and options.orphanDependents is not None:
        policy = "Orphan" if options.orphanDependents else "Background"
    if policy is None and kind.qualified in _ORPHANING:
        policy = "Orphan"
    wanted = _FINALIZERS.get(policy or "")
    finalizers = [each for each in head.get("finalizers") or () if policy is None or each not in _FINALIZERS.values()]
    if wanted and wanted not in finalizers:
        finalizers.append(wanted)
    if finalizers:
        head["finalizers"] = finalizers
    else:
        head.pop("finalizers", None)


def _grace(item: Json, options: DeleteOptions) -> int:
    """Returns the grace period of a pod in seconds."""
    spec, phase = item["spec"], item.get("status", {}).get("phase")
    if not spec.get("nodeName") or phase in {"Succeeded", "Failed"}:
        return 0
    wish = options.gracePeriodSeconds
    if wish is None:
        wish = spec.get("terminationGracePeriodSeconds", 30)
    return 1 if wish < 0 else wish


def _mark(core: ObjectStore, head: Json, wait: int, at_once: bool) -> None:
    """Sets the deletion timestamp, or shortens the grace period; never lengthens it."""
    if "deletionTimestamp" in head:
        if wait < head.get("deletionGracePeriodSeconds", 0):
            head["deletionTimestamp"] = core.stamps.later(wait)
            head["deletionGracePeriodSeconds"] = wait
        return
    head["deletionTimestamp"] = core.stamps.later(0 if at_once else wait)
    head["deletionGracePeriodSeconds"] = wait
    if head.get("generation"):
        head["generation"] += 1


def _delete_namespace(core: ObjectStore, target: Target, item: Json) -> bool:
    """Marks a namespace as terminating. It is removed when it is empty and has no finalizers."""
    head = item["metadata"]
    if "deletionTimestamp" not in head:
        head["deletionTimestamp"] = core.now()
        item["status"] = {**item.get("status", {}), "phase": "Terminating"}
        core.write(target.kind, target.key, item)
    if item["spec"].get("finalizers") or head.get("finalizers"):
        return False
    core.remove(target.kind, target.key, item)
    return True


def _success(kind: ServedKind, item: Json) -> Json:
    details = {"name": item["metadata"]["name"], **({"group": kind.group} if kind.group else {})}
    details |= {"kind": kind.resource, "uid": item["metadata"]["uid"]}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}


def finalize(core: ObjectStore, target: Target, finalizers: list[str]) -> Result:
    """Serves namespaces/finalize: replaces the finalizers, and removes a deleted namespace without any."""
    data = core.store.get(target.kind.store, target.key)
    if data is None:
        raise not_found(target.kind, target.name)
    item = decode(data)
    if item["spec"].get("finalizers") != finalizers:
        item["spec"] = {**item["spec"], "finalizers": finalizers} if finalizers else {}
        if "deletionTimestamp" in item["metadata"] and not finalizers:
            core.remove(target.kind, target.key, decode(data))
            return 200, encode(item)
        core.write(target.kind, target.key, item)
    return 200, encode(item)
