"""Discovery: the groups, versions and resources, aggregated into one document and in the older formats."""

from kubenexus.sim.apiserver.kinds import Registry, ServedKind, Subresource
from kubenexus.sim.apiserver.status_errors import Json

VERSION: Json = {
    "major": "1",
    "minor": "37",
    "emulationMajor": "1",
    "emulationMinor": "37",
    "minCompatibilityMajor": "1",
    "minCompatibilityMinor": "36",
    "gitVersion": "v1.37.1+kubenexus",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "python",
    "platform": "any",
}


# Clients identify the document by its content type, not by its body.
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def wants_aggregated(accept: str) -> bool:
    return "as=APIGroupDiscoveryList" in accept and "v=v2" in accept


def aggregated(registry: Registry, *, core: bool) -> Json:
    """Returns `/api` or `/apis` as one document."""
    groups: dict[str, dict[str, list[Json]]] = {}
    for kind in registry.all():
        if (kind.group == "") is core:
            groups.setdefault(kind.group, {}).setdefault(kind.version, []).append(_resource(kind))
    items = [
        {
            "metadata": {"name": group} if group else {},
            "versions": [
                {"version": version, "resources": resources, "freshness": "Current"}
                for version, resources in versions.items()
            ],
        }
        for group, versions in groups.items()
    ]
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


def _resource(kind: ServedKind) -> Json:
    said: Json = {
        "resource": kind.resource,
        "responseKind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
        "scope": kind.scope,
        "singularResource": kind.singular_resource,
        "verbs": list(kind.verbs),
    }
    if kind.short_names:
        said["shortNames"] = list(kind.short_names)
    if kind.categories:
        said["categories"] = list(kind.categories)
    subs = [_subresource(name, sub) for name, sub in kind.subresources.items()]
    return said | ({"subresources": subs} if subs else {})


def _subresource(name: str, sub: Subresource) -> Json:
    response = {"group": sub.group, "version": sub.version, "kind": sub.kind}
    return {"subresource": name, "responseKind": response, "verbs": list(sub.verbs)}


# ---- the older formats -----------------------------------------------------------------------------------------------


def versions(host: str) -> Json:
    """Returns the document of `/api`."""
    where = [{"clientCIDR": "0.0.0.0/0", "serverAddress": host}]
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": where}


def groups(registry: Registry) -> Json:
    """Returns the document of `/apis`."""
    names = dict.fromkeys(kind.group for kind in registry.all() if kind.group)
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(registry, name) for name in names]}


def group(registry: Registry, name: str) -> Json | None:
    """Returns the document of one group, such as `/apis/apps`."""
    if not any(kind.group == name for kind in registry.all()):
        return None
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(registry, name)}


def _group(registry: Registry, name: str) -> Json:
    known = dict.fromkeys(kind.version for kind in registry.all() if kind.group == name)
    found = [{"groupVersion": f"{name}/{version}", "version": version} for version in known]
    return {"name": name, "versions": found, "preferredVersion": found[0]}


def resources(registry: Registry, group_version: str) -> Json | None:
    """Returns the document of one group and version, such as `/api/v1` or `/apis/apps/v1`."""
    kinds = [kind for kind in registry.all() if kind.group_version == group_version]
    if not kinds:
        return None
    found = [entry for kind in kinds for entry in _entries(kind)]
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": found}


def _entries(kind: ServedKind) -> list[Json]:
    said: Json = {"name": kind.resource, "singularName": kind.singular_resource, "namespaced": kind.namespaced}
    said |= {"kind": kind.kind, "verbs": list(kind.verbs)}
    if kind.short_names:
        said["shortNames"] = list(kind.short_names)
    if kind.categories:
        said["categories"] = list(kind.categories)
    subs: list[Json] = [
        {
            "name": f"{kind.resource}/{name}",
            "singularName": "",
            "namespaced": kind.namespaced,
            **({"group": sub.group, "version": sub.version} if sub.group != kind.group else {}),
            "kind": sub.kind,
            "verbs": list(sub.verbs),
        }
        for name, sub in kind.subresources.items()
    ]
    return [said, *subs]
