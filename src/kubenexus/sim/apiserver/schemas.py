"""The schemas of the real server: the definition of each field, and the merge keys of lists."""

import functools
from collections.abc import Mapping
from typing import Any

import msgspec

from kubenexus.sim.apiserver.kinds import DATA, ServedKind

Schema = Mapping[str, Any]
_REF = "#/components/schemas/"
_SAME_FIELDS = {"resource.k8s.io/v1beta2": "resource.k8s.io/v1"}  # versions whose schemas differ in descriptions only


@functools.cache
def definitions() -> dict[str, dict[str, Any]]:
    """Returns all definitions by name. Read once, with the first object."""
    found: dict[str, dict[str, Any]] = msgspec.json.decode((DATA / "schemas.json").read_bytes())
    return found


@functools.cache
def _by_kind() -> dict[tuple[str, str], str]:
    found = {}
    for name, schema in definitions().items():
        for each in schema.get("x-kubernetes-group-version-kind", ()):
            where = f"{each['group']}/{each['version']}" if each["group"] else each["version"]
            found[where, each["kind"]] = name
    return found


def name_of(group_version: str, kind: str) -> str | None:
    """Returns the name of a kind's definition, or None if there is no schema."""
    return _by_kind().get((_SAME_FIELDS.get(group_version, group_version), kind))


def schema_of(kind: ServedKind) -> Schema | None:
    """Returns the schema of a recorded or a custom kind."""
    if kind.custom is not None:
        schema: Schema | None = (kind.custom.get("schema") or {}).get("openAPIV3Schema")
        return schema
    name = name_of(kind.group_version, kind.kind)
    return None if name is None else definitions()[name]


def reference(schema: Schema) -> str | None:
    """Returns the name of the definition that a schema refers to, or None."""
    target = schema.get("$ref") or (schema.get("allOf") or [{}])[0].get("$ref")
    return None if target is None else str(target).removeprefix(_REF)


def resolved(schema: Schema | None) -> Schema:
    """Returns the schema behind a reference. An unknown schema is empty and allows anything."""
    if schema is None:
        return {}
    name = reference(schema)
    return schema if name is None else definitions()[name]


def field(schema: Schema | None, key: str) -> Schema | None:
    """Returns the schema of a field. References are not followed: the patch strategy is next to them."""
    whole = resolved(schema)
    found = (whole.get("properties") or {}).get(key)
    if found is None and isinstance(whole.get("additionalProperties"), Mapping):
        return dict(whole["additionalProperties"])
    return found


def items(schema: Schema | None) -> Schema | None:
    found: Schema | None = resolved(schema).get("items")
    return found
