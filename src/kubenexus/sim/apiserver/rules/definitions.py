"""CustomResourceDefinitions: their rule, and the kinds that they define."""

from typing import Any

from kubenexus.sim.apiserver.kinds import ServedKind, Subresource
from kubenexus.sim.apiserver.rules.base import ClusterReader, Rule
from kubenexus.sim.apiserver.rules.templates import fill
from kubenexus.sim.apiserver.status_errors import FieldError, Json, invalid, required, unsupported

VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_AGE = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}


def _default(item: Json) -> None:
    spec = item.setdefault("spec", {})
    names = spec.setdefault("names", {})
    if names.get("kind"):
        fill(names, {"singular": names["kind"].lower(), "listKind": f"{names['kind']}List"})
    spec.setdefault("conversion", {"strategy": "None"})


def _check(item: Json) -> list[FieldError]:
    spec = item["spec"]
    names = spec["names"]
    flaws = [required(f"spec.{field}") for field in ("group", "scope") if not spec.get(field)]
    flaws += [required(f"spec.names.{field}") for field in ("plural", "kind") if not names.get(field)]
    if not flaws and item["metadata"].get("name") != f"{names['plural']}.{spec['group']}":
        shown = f"{names['plural']}.{spec['group']}"
        why = 'must be spec.names.plural+"."+spec.group'
        flaws.append(invalid("metadata.name", item["metadata"].get("name", ""), why) if shown else required("x"))
    if spec.get("scope") not in {"", None, "Cluster", "Namespaced"}:
        flaws.append(unsupported("spec.scope", spec["scope"], ("Cluster", "Namespaced")))
    return flaws + _check_versions(spec.get("versions") or [])


def _check_versions(versions: list[Json]) -> list[FieldError]:
    flaws = []
    if sum(1 for each in versions if each.get("storage")) != 1:
        why = "must have exactly one version marked as storage version"
        flaws.append(invalid("spec.versions", versions, why))
    for index, each in enumerate(versions):
        if not (each.get("schema") or {}).get("openAPIV3Schema"):
            flaws.append(required(f"spec.versions[{index}].schema.openAPIV3Schema", "schemas are required"))
    return flaws


def _admit(item: Json, cluster: ClusterReader) -> None:
    """Accepts the names at once: conflicts between definitions are not modelled."""
    names = item["spec"]["names"]
    now = cluster.now()
    stored = [each["name"] for each in item["spec"].get("versions") or () if each.get("storage")]
    item["status"] = {
        "conditions": [
            _condition("NamesAccepted", now, "NoConflicts", "no conflicts found"),
            _condition("Established", now, "InitialNamesAccepted", "the initial names have been accepted"),
        ],
        "acceptedNames": dict(names),
        "storedVersions": stored,
    }


def _condition(type: str, now: str, reason: str, message: str) -> Json:
    return {"type": type, "status": "True", "lastTransitionTime": now, "reason": reason, "message": message}


def _keep(new: Json, old: Json, _: ClusterReader) -> None:
    new["status"] = old.get("status", {})


DEFINITION = Rule(
    default=_default,
    admit=_admit,
    admit_update=_keep,
    check=_check,
    unconditional=False,
    generation=True,
    returns_deleted=True,
)


# ---- the kinds of a definition ---------------------------------------------------------------------------------------


def kinds_of(item: Json) -> list[ServedKind]:
    """Returns one kind for each served version."""
    return [_kind(item["spec"], each) for each in item["spec"].get("versions") or () if each.get("served")]


def _kind(spec: Json, version: Json) -> ServedKind:
    names = spec["names"]
    where = f"{spec['group']}/{version['name']}"
    return ServedKind(
        group_version=where,
        resource=names["plural"],
        kind=names["kind"],
        singular_resource=names["singular"],
        scope=spec["scope"],
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        verbs=VERBS,
        subresources=_subresources(spec, version),
        columns=_columns(version),
        fields=tuple(each["jsonPath"].removeprefix(".") for each in version.get("selectableFields") or ()),
        custom=version,
        list_kind=names["listKind"],
    )


def _subresources(spec: Json, version: Json) -> dict[str, Subresource]:
    found = {}
    asked: dict[str, Any] = version.get("subresources") or {}
    verbs = ("get", "patch", "update")
    if "status" in asked:
        found["status"] = Subresource(spec["names"]["kind"], verbs, spec["group"], version["name"])
    if "scale" in asked:
        found["scale"] = Subresource("Scale", verbs, "autoscaling", "v1")
    return found


def _columns(version: Json) -> list[dict[str, Any]]:
    name = {"name": "Name", "type": "string", "format": "name", "description": "", "priority": 0}
    told = version.get("additionalPrinterColumns") or [_AGE]
    return [name, *({"format": "", "description": "", "priority": 0, **each} for each in told)]
