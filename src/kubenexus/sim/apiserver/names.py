"""Validation of names, labels and annotations, with the messages of the API server."""

import functools
import re
from collections.abc import Mapping
from typing import Any

from kubenexus.sim.apiserver.status_errors import FieldError, Json, invalid, required, too_long

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_DNS_LABEL = re.compile(_LABEL)
_DNS_SUBDOMAIN = re.compile(_SUBDOMAIN)
_NAME_PART = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")

_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    f"end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
)
_LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    f"an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{_LABEL}')"
)
_KEY_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


def subdomain(name: str) -> str:
    """Returns why this is not a valid name of an object, or ""."""
    if len(name) > 253:
        return "must be no more than 253 bytes"
    return "" if _DNS_SUBDOMAIN.fullmatch(name) else _SUBDOMAIN_RULE


def label(name: str) -> str:
    """Returns the same for names that must be a DNS label: namespaces, containers, services."""
    if "." in name:
        return "must not contain dots"
    if len(name) > 63:
        return "must be no more than 63 bytes"
    return "" if _DNS_LABEL.fullmatch(name) else _LABEL_RULE


def path_segment(name: str) -> str:
    """Returns the same for RBAC objects, whose names may contain almost anything."""
    if name in {".", ".."}:
        return f"may not be '{name}'"
    found = [each for each in "/%" if each in name]
    return f"may not contain '{found[0]}'" if found else ""


@functools.lru_cache(8192)
def qualified(key: str) -> str:
    """Returns why this is not a valid label key, or ""."""
    prefix, slash, name = key.rpartition("/")
    if slash and not _DNS_SUBDOMAIN.fullmatch(prefix):
        return "prefix part " + _SUBDOMAIN_RULE if prefix else "prefix part must be non-empty"
    if not name:
        return "name part must be non-empty; " + _KEY_RULE
    if len(name) > 63:
        return "name part must be no more than 63 bytes"
    return "" if _NAME_PART.fullmatch(name) else _KEY_RULE


@functools.lru_cache(8192)
def label_value(value: str) -> str:
    if len(value) > 63:
        return "must be no more than 63 bytes"
    return "" if _VALUE.fullmatch(value) else _VALUE_RULE


def check_labels(labels: Mapping[str, str], field: str) -> list[FieldError]:
    flaws = []
    for key, value in labels.items():
        if why := qualified(key):
            flaws.append(invalid(field, key, why))
        if why := label_value(value):
            flaws.append(invalid(field, value, why))
    return flaws


def check_meta(meta: Json) -> list[FieldError]:
    """Checks labels, annotations, finalizers and owners. The rule of the kind checks the name."""
    flaws = check_labels(meta.get("labels") or {}, "metadata.labels")
    annotations = meta.get("annotations") or {}
    for key in annotations:
        if why := qualified(key.lower()):
            flaws.append(invalid("metadata.annotations", key, why))
    if sum(len(key) + len(value) for key, value in annotations.items()) > 256 * 1024:
        flaws.append(too_long("metadata.annotations", 262144))
    for finalizer in meta.get("finalizers") or ():
        if why := qualified(finalizer):
            flaws.append(invalid("metadata.finalizers", finalizer, why))
        elif "/" not in finalizer and finalizer not in _OWN_FINALIZERS:
            why = "name is neither a standard finalizer name nor is it fully qualified"
            flaws.append(invalid("metadata.finalizers[0]", finalizer, why))
    for index, owner in enumerate(meta.get("ownerReferences") or ()):
        flaws += _check_owner(owner, f"metadata.ownerReferences[{index}]")
    return flaws


_OWN_FINALIZERS = {"orphan", "foregroundDeletion", "kubernetes"}


def _check_owner(owner: Mapping[str, Any], field: str) -> list[FieldError]:
    wanted = {"apiVersion": "version must not be empty", "kind": "must not be empty", "name": "must not be empty"}
    wanted["uid"] = "must not be empty"
    return [invalid(f"{field}.{key}", "", why) for key, why in wanted.items() if not owner.get(key)]


def check_selector(selector: Mapping[str, Any] | None, field: str) -> list[FieldError]:
    """Checks a LabelSelector inside an object."""
    if not selector:
        return []
    flaws = check_labels(selector.get("matchLabels") or {}, f"{field}.matchLabels")
    for index, each in enumerate(selector.get("matchExpressions") or ()):
        flaws += _check_expression(each, f"{field}.matchExpressions[{index}]")
    return flaws


def _check_expression(each: Mapping[str, Any], field: str) -> list[FieldError]:
    operator, values, flaws = each.get("operator", ""), each.get("values") or (), []
    if operator in {"In", "NotIn"} and not values:
        flaws.append(required(f"{field}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in {"Exists", "DoesNotExist"} and values:
        why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        flaws.append(FieldError(f"{field}.values", "FieldValueForbidden", f"Forbidden: {why}"))
    elif operator not in {"In", "NotIn", "Exists", "DoesNotExist"}:
        flaws.append(invalid(f"{field}.operator", operator, "not a valid selector operator"))
    if why := qualified(each.get("key", "")):
        flaws.append(invalid(f"{field}.key", each.get("key", ""), why))
    return flaws
