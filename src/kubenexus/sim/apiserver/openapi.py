"""Serves `/openapi/v3`: as much as kubectl needs to validate, to compute patches and to explain.

`/openapi/v2` is a document without kinds. kubectl reads it, as protobuf, before it creates an object that v3 does not
describe, and validates nothing that is not in it. So a kind without a CRD becomes "no matches for kind".
"""

import re
from typing import Any

from kubenexus.sim.apiserver import schemas
from kubenexus.sim.apiserver.kinds import Registry, ServedKind
from kubenexus.sim.apiserver.status_errors import Json

V2_PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_INFO = {"title": "KubeNexus", "version": "v1.37.1"}
_REF = re.compile(r"#/components/schemas/(.*)")
# kubectl reads here whether the server validates fields itself.
_PARAMETERS = [
    {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}
    for name in ("dryRun", "fieldManager", "fieldValidation", "force")
]


def index(registry: Registry) -> Json:
    paths = dict.fromkeys(_path(kind) for kind in registry.all())
    return {"paths": {path: {"serverRelativeURL": f"/openapi/v3/{path}"} for path in paths}}


def document(registry: Registry, path: str) -> Json | None:
    """Returns the document of one group and version: its schemas, and the paths for writing."""
    kinds = [kind for kind in registry.all() if _path(kind) == path]
    if not kinds:
        return None
    found: dict[str, Any] = {}
    for kind in kinds:
        _collect(kind, found)
    paths = {where: operations for kind in kinds for where, operations in _paths(kind).items()}
    return {"openapi": "3.0.0", "info": _INFO, "paths": paths, "components": {"schemas": found}}


def v2_document() -> Json:
    """Returns the document of `/openapi/v2`."""
    return {"swagger": "2.0", "info": _INFO, "paths": {}, "definitions": {}}


def v2_protobuf() -> bytes:
    """Returns the document of `/openapi/v2` as a message of openapi.v2.Document: swagger (1), info (2)."""
    info = _text_field(1, _INFO["title"].encode()) + _text_field(2, _INFO["version"].encode())
    return _text_field(1, b"2.0") + _text_field(2, info)


def wants_v2_protobuf(accept: str) -> bool:
    """Whether the client accepts the protobuf of `/openapi/v2`. kubectl writes an "@" for the first dot of
    `V2_PROTOBUF`'s version."""
    return "proto-openapi.spec.v2" in accept


def _text_field(number: int, content: bytes) -> bytes:
    """Returns a protobuf field of fewer than 128 bytes."""
    return bytes((number << 3 | 2, len(content))) + content


def _path(kind: ServedKind) -> str:
    return f"apis/{kind.group_version}" if kind.group else f"api/{kind.group_version}"


def _collect(kind: ServedKind, found: dict[str, Any]) -> None:
    if kind.custom is not None:
        found[f"{kind.group_version.replace('/', '.')}.{kind.kind}"] = _custom(kind)
        _collect_all(["io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"], found)
        return
    name = schemas.name_of(kind.group_version, kind.kind)
    if name is not None:
        _collect_all([name], found)


def _collect_all(names: list[str], found: dict[str, Any]) -> None:
    """Adds the definitions and all definitions that they refer to."""
    while names:
        name = names.pop()
        if name not in found:
            found[name] = schemas.definitions()[name]
            names += list(_references(found[name]))


def _references(schema: Any) -> list[str]:
    if isinstance(schema, list):
        return [name for each in schema for name in _references(each)]
    if not isinstance(schema, dict):
        return []
    own = _REF.fullmatch(schema["$ref"]) if isinstance(schema.get("$ref"), str) else None
    return [*([own.group(1)] if own else []), *(name for each in schema.values() for name in _references(each))]


def _custom(kind: ServedKind) -> Json:
    own = dict(schemas.schema_of(kind) or {"type": "object"})
    meta = {"allOf": [{"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}]}
    text = {"type": "string"}
    own["properties"] = {"apiVersion": text, "kind": text, "metadata": meta, **(own.get("properties") or {})}
    return {**own, "x-kubernetes-group-version-kind": [_named(kind)]}


def _named(kind: ServedKind) -> Json:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


def _paths(kind: ServedKind) -> dict[str, Json]:
    if "patch" not in kind.verbs:
        return {}
    middle = "/namespaces/{namespace}" if kind.namespaced else ""
    where = f"/{_path(kind)}{middle}/{kind.resource}"
    operation = {"parameters": _PARAMETERS, "responses": {"200": {"description": "OK"}}}
    operation["x-kubernetes-group-version-kind"] = _named(kind)
    one = {**operation, "x-kubernetes-action": "patch"}
    many = {**operation, "x-kubernetes-action": "post"}
    return {where: {"post": many}, f"{where}/{{name}}": {"patch": one}}
