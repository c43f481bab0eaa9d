"""Kinds that a real server serves only behind a feature gate, and that the embedded one does not serve by default."""

import msgspec

from kubenexus.client.kinds import POD_GROUPS, POD_GROUPS_ALPHA
from kubenexus.sim.apiserver.http_types import Request
from kubenexus.sim.apiserver.server import ApiServer

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def serve_pod_groups(server: ApiServer) -> None:
    """Serves pod groups (the gate GenericWorkload). They are stored as sent, without validation."""
    if server.core.registry.of_object(POD_GROUPS.api_version, POD_GROUPS.kind) is not None:
        return
    any_object = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    versions = [
        {"name": each.version, "served": True, "storage": each is POD_GROUPS, "schema": any_object}
        for each in (POD_GROUPS, POD_GROUPS_ALPHA)
    ]
    name = POD_GROUPS.plural
    names = {"plural": name, "singular": "podgroup", "kind": POD_GROUPS.kind, "listKind": "PodGroupList"}
    spec = {"group": POD_GROUPS.group, "scope": "Namespaced", "names": names, "versions": versions}
    body = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{name}.{POD_GROUPS.group}"},
        "spec": spec,
    }
    answer = server.handle(Request("POST", DEFINITIONS, msgspec.json.encode(body)))
    assert answer.code == 201, answer.body
