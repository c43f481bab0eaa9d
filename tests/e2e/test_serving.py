"""What a running scheduler shows to probes, to Prometheus and to people."""

import contextlib
import http.client
import ssl

from kubenexus.testing.controlplane import ClusterClient, ControlPlane
from kubenexus.testing.controlplane.plane import free_ports
from tests.e2e.scheduling import Start, a_node, a_pod, make_nodes, placed, pods


def get(port: int, path: str, token: str = "", *, secure: bool = True) -> tuple[int, str]:
    trust = ssl._create_unverified_context()  # it signed its certificate itself
    host = "127.0.0.1"
    connection = (
        http.client.HTTPSConnection(host, port, context=trust) if secure else http.client.HTTPConnection(host, port)
    )
    with contextlib.closing(connection):
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def test_health_metrics_and_pages(
    scheduler: Start, plane: ControlPlane, cluster: ClusterClient, namespace: str
) -> None:
    make_nodes(cluster, a_node("n1"))
    secure, health = free_ports(2)
    program = scheduler(
        f"--secure-port={secure}",
        "--bind-address=127.0.0.1",
        f"--health-bind-address=127.0.0.1:{health}",
        "--logging-format=json",
        "-v=2",
        wait=False,
    )
    program.until(lambda: '"msg":"Scheduling"' in program.said())
    cluster.create(a_pod("one", "1"), namespace)
    cluster.create(a_pod("large", "9"), namespace)
    cluster.until(pods(namespace), lambda seen: list(placed(seen)) == ["one"], "one is bound")
    for path in ("/livez", "/readyz", "/healthz"):
        assert get(health, path, secure=False) == (200, "ok")
        assert get(secure, path) == (200, "ok")
    assert get(health, "/metrics", secure=False)[0] == 404
    assert get(secure, "/metrics")[0] == 403, "not for everybody"
    assert get(secure, "/metrics", "wrong")[0] == 401
    code, text = get(secure, "/metrics", plane.token())
    assert code == 200
    profile = 'profile="kubenexus-scheduler"'
    assert f'scheduler_schedule_attempts_total{{{profile},result="scheduled"}} 1.0' in text
    assert f'scheduler_schedule_attempts_total{{{profile},result="unschedulable"}} 1.0' in text
    assert 'scheduler_pending_pods{queue="unschedulable"} 1.0' in text
    assert 'scheduler_cache_size{type="nodes"} 1.0' in text
    assert "kubenexus-scheduler" in get(secure, "/configz", plane.token())[1]
    said = program.said()
    assert '"msg":"Successfully bound pod to node"' in said
    assert '"msg":"Unable to schedule pod; no fit; waiting"' in said
