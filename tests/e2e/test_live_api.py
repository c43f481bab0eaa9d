"""The live API of a running scheduler, to users with the rights that a real API server gives them."""

import json

from kubenexus.testing.controlplane import ClusterClient, ControlPlane
from kubenexus.testing.controlplane.plane import free_ports
from tests.e2e.scheduling import Start, a_node, a_pod, make_nodes, pods
from tests.e2e.test_serving import get

RBAC = "/apis/rbac.authorization.k8s.io/v1"


GROUP = "rbac.authorization.k8s.io"
A_ROLE = {
    "apiVersion": f"{GROUP}/v1",
    "kind": "Role",
    "metadata": {"name": "reader"},
    "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}],
}
A_BINDING = {
    "apiVersion": f"{GROUP}/v1",
    "kind": "RoleBinding",
    "metadata": {"name": "reader"},
    "roleRef": {"apiGroup": GROUP, "kind": "Role", "name": "reader"},
    "subjects": [{"apiGroup": GROUP, "kind": "User", "name": "somebody"}],
}


def test_a_user_sees_what_the_users_own_rights_allow(
    scheduler: Start, plane: ControlPlane, cluster: ClusterClient, namespace: str
) -> None:
    make_nodes(cluster, a_node("n1"))
    (secure,) = free_ports(1)
    program = scheduler(f"--secure-port={secure}", "--bind-address=127.0.0.1")
    cluster.create(a_pod("large", "90"), namespace)
    cluster.until(pods(namespace), lambda seen: bool(seen["large"]["status"].get("conditions")), "large is refused")
    explain, jobs = f"/api/v1/explain?namespace={namespace}&name=large", f"/api/v1/jobs?namespace={namespace}"

    assert get(secure, explain)[0] == 403, "anonymous"
    assert get(secure, explain, "wrong")[0] == 401
    code, text = get(secure, explain, plane.token("somebody"))
    assert (code, f'cannot get pods in namespace \\"{namespace}\\"' in text) == (403, True), "authenticated alone"

    cluster.send("POST", f"{RBAC}/namespaces/{namespace}/roles", A_ROLE)
    cluster.send("POST", f"{RBAC}/namespaces/{namespace}/rolebindings", A_BINDING)
    # The old answer of the API server is cached for ten seconds.
    program.until(lambda: get(secure, explain, plane.token("somebody"))[0] == 200, 40)
    found = json.loads(get(secure, explain, plane.token("somebody"))[1])
    assert found["message"].startswith("0/1 nodes are available: 1 Insufficient cpu")
    assert found["explanation"] is None
    assert get(secure, jobs, plane.token("somebody"))[0] == 200
    assert get(secure, "/api/v1/jobs", plane.token("somebody"))[0] == 403, "all namespaces"
    assert get(secure, "/api/v1/nodes", plane.token("somebody"))[0] == 403

    code, text = get(secure, explain, plane.token())
    assert "node n1 has" in text
    assert json.loads(get(secure, "/api/v1/nodes", plane.token())[1])["items"][0]["name"] == "n1"
