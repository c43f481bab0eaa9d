"""Finds the object, collection or subresource that a path names."""

from kubenexus.sim.apiserver.kinds import Registry
from kubenexus.sim.apiserver.status_errors import no_containers, no_such_resource
from kubenexus.sim.apiserver.verbs import Target

_NAMESPACE_SUBS = ("status", "finalize")
_INSIDE = ("log", "exec", "attach", "portforward")


def find(registry: Registry, path: str) -> Target | None:
    """Returns the target of a path below `/api` or `/apis`, or None if the group is unknown. Raises StatusError
    (404)."""
    parts = path.strip("/").split("/")
    depth = 2 if parts[0] == "api" else 3
    group_version = "/".join(parts[1:depth])
    if len(parts) <= depth or not registry.has_group_version(group_version):
        return None
    rest = parts[depth:]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and not _of_namespace(rest, group_version):
        namespace, rest = rest[1], rest[2:]
    kind = registry.find(group_version, rest[0])
    if kind is None or len(rest) > 3 or (namespace and not kind.namespaced):
        raise no_such_resource()
    target = Target(kind, namespace, *rest[1:])
    if target.sub and target.sub not in kind.subresources:
        raise no_containers(target.sub) if kind.store == "pods" and target.sub in _INSIDE else no_such_resource()
    return target


def _of_namespace(rest: list[str], group_version: str) -> bool:
    """Whether the path is about the namespace itself (`namespaces/x/status`), not its content (`namespaces/x/pods`)."""
    return group_version == "v1" and len(rest) == 3 and rest[2] in _NAMESPACE_SUBS
