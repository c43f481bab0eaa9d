"""Request bodies: JSON, YAML or protobuf, checked for their kind and, if strict, for unknown fields."""

from typing import Any

import msgspec
import yaml

from kubenexus.sim.apiserver import protobuf, typed_objects
from kubenexus.sim.apiserver.http_types import Request
from kubenexus.sim.apiserver.kinds import Registry, ServedKind
from kubenexus.sim.apiserver.object_store import kept
from kubenexus.sim.apiserver.status_errors import (
    Json,
    StatusError,
    bad_request,
    invalid,
    invalid_object,
    invalid_options,
    unsupported,
)
from kubenexus.sim.apiserver.verbs import WriteOptions

_VALIDATIONS = ("", "Ignore", "Strict", "Warn")
_FORMATS = "application/json, application/yaml"


def wish(request: Request, options: str, *, put: bool = False) -> WriteOptions:
    """Reads the write options from the query; `options` is their name in messages. Raises StatusError."""
    query = request.query
    if not query:
        return WriteOptions(put=put)
    if query.get("fieldValidation", "") not in _VALIDATIONS:
        flaw = unsupported("fieldValidation", query["fieldValidation"], _VALIDATIONS)
        raise invalid_options(options, flaw)
    if query.get("dryRun", "") not in {"", "All"}:
        raise invalid_options(options, unsupported("dryRun", [query["dryRun"]], ("All",)))
    return WriteOptions(
        dry_run=query.get("dryRun") == "All",
        manager=query.get("fieldManager", ""),
        force=query.get("force", "") == "true",
        put=put,
    )


def item(registry: Registry, kind: ServedKind, request: Request) -> Json:
    """Returns the object in a body, as it is stored. Raises StatusError."""
    content = request.header("content-type").partition(";")[0].strip()
    if content in {"application/yaml", "application/apply-patch+yaml"}:
        return decoded(registry, kind, from_yaml(request.body), request)
    if content == protobuf.CONTENT:
        return decoded(registry, kind, protobuf.decode(request.body), request)
    if content not in {"application/json", ""}:
        why = "the body of the request was in an unknown format - accepted media types include"
        raise StatusError(415, "UnsupportedMediaType", f"{why}: {_FORMATS}")
    if request.query.get("fieldValidation") == "Strict":
        return decoded(registry, kind, _json(kind, request.body), request)
    found = typed_objects.read(kind, request.body)
    _right_kind(registry, kind, found)
    return kept(kind, found)


def decoded(registry: Registry, kind: ServedKind, seen: Any, request: Request) -> Json:
    """As `item`, for a body that is decoded already."""
    if not isinstance(seen, dict):
        raise bad_request(f"the object provided is unrecognized (must be of type {kind.kind})")
    _right_kind(registry, kind, seen)
    if request.query.get("fieldValidation") == "Strict":
        strict(kind, seen)
    return kept(kind, typed_objects.convert(kind, seen))


def strict(kind: ServedKind, seen: Json) -> None:
    """Raises StatusError if the object has fields that are not in the schema."""
    unknown = typed_objects.unknown_fields(kind, seen)
    if unknown:
        told = ", ".join(f'unknown field "{each}"' for each in unknown)
        why = f"strict decoding error: {told}"
        raise bad_request(f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: {why}')


def from_yaml(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)  # kubectl labels JSON as YAML
    except msgspec.DecodeError:
        pass
    try:
        return yaml.load(body, yaml.CSafeLoader)
    except yaml.YAMLError as error:
        raise bad_request(f"error decoding YAML: {error}") from None


def _json(kind: ServedKind, body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        why = f"couldn't get version/kind; json parse error: {error}"
        raise bad_request(f"the object provided is unrecognized (must be of type {kind.kind}): {why}") from None


def _right_custom_kind(kind: ServedKind, seen: Json) -> None:
    """Checks kind and apiVersion of a custom object, which must contain both."""
    for key, name in (("kind", "Kind"), ("apiVersion", "apiVersion")):
        if not seen.get(key):
            raise bad_request(
                f"the object provided is unrecognized (must be of type {kind.kind}): Object '{name}' is missing"
            )
    if seen["apiVersion"] != kind.group_version:
        raise bad_request(
            f"the API version in the data ({seen['apiVersion']}) does not match the expected API version "
            f"({kind.group_version})"
        )
    if seen["kind"] != kind.kind:
        wrong = msgspec.structs.replace(kind, kind=seen["kind"])
        flaw = invalid("kind", seen["kind"], f"must be {kind.kind}")
        raise invalid_object(wrong, (seen.get("metadata") or {}).get("name", ""), [flaw])


def _right_kind(registry: Registry, kind: ServedKind, seen: Json) -> None:
    """Checks that kind and apiVersion of the object, if set, match the path."""
    if kind.custom is not None:
        _right_custom_kind(kind, seen)
        return
    said, version = seen.get("kind") or kind.kind, seen.get("apiVersion") or kind.group_version
    if said == kind.kind and version == kind.group_version:
        return
    if registry.of_object(version, said) is None:
        why = f'no kind "{said}" is registered for version "{version}" in scheme "pkg/runtime/scheme.go:111"'
    else:
        why = f"converting (v1.{said}) to (core.{kind.kind}): unknown conversion"
    shown = version.rpartition("/")[2]
    raise bad_request(f'{said} in version "{shown}" cannot be handled as a {kind.kind}: {why}')
