"""What is wrong at the start is one clear line and exit code 1, never a traceback and never a hang."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from kubenexus.testing.controlplane import ClusterClient, ControlPlane
from kubenexus.testing.controlplane.plane import free_ports
from tests.client.conftest import Papers
from tests.e2e.scheduling import Start, a_node, a_pod, condition, events, make_nodes, placed, pods

HOME = "kubenexus-system"
CLUSTER_ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
CLUSTER_BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"


def run(*options: str, seconds: float = 30.0) -> tuple[int, str]:
    """`kubenexus run` to its end: the code, and what it said."""
    command = [sys.executable, "-m", "kubenexus", "run", "--secure-port=0", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=seconds)
    return done.returncode, done.stdout + done.stderr


class Wrong:
    """Files with something wrong in them."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self._plane, self._folder = plane, folder
        self._good = yaml.safe_load(plane.kubeconfig().read_text())

    def good(self) -> str:
        return f"--kubeconfig={self._plane.kubeconfig()}"

    def file(self, text: str, name: str = "file") -> str:
        path = self._folder / name
        path.write_text(text)
        return str(path)

    def server(self, address: str) -> str:
        document = yaml.safe_load(yaml.safe_dump(self._good))
        document["clusters"][0]["cluster"]["server"] = address
        return f"--kubeconfig={self.file(yaml.safe_dump(document))}"

    def user(self, **user: str) -> str:
        document = yaml.safe_load(yaml.safe_dump(self._good))
        document["users"][0]["user"] = user
        return f"--kubeconfig={self.file(yaml.safe_dump(document))}"

    def expired(self) -> dict[str, str]:
        papers = Papers(self._folder)
        return {"client-certificate": str(papers.expired_client), "client-key": str(papers.key(papers.expired_client))}


VERSION = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
CASES: dict[str, tuple[Callable[[Wrong], list[str]], str]] = {
    "unknown flag": (lambda w: ["--sheduler-name=x"], "No such option"),
    "port out of range": (lambda w: ["--secure-port=99999"], "Invalid value for '--secure-port'"),
    "bad duration": (
        lambda w: [w.good(), "--leader-elect-lease-duration=soon"],
        "--leader-elect-lease-duration: time: invalid duration",
    ),
    "lease shorter than its renewal": (
        lambda w: [w.good(), "--leader-elect-lease-duration=5s"],
        "leaderElection.leaseDuration",
    ),
    "config not there": (lambda w: ["--config=/nowhere/config.yaml"], "cannot read /nowhere/config.yaml"),
    "config wrong": (
        lambda w: [f"--config={w.file(VERSION + 'parallelism: -1')}"],
        "parallelism: Invalid value: -1: should be an integer value greater than zero",
    ),
    "two profiles and a name": (
        lambda w: [
            w.good(),
            f"--config={w.file(VERSION + 'profiles: [{schedulerName: a}, {schedulerName: b}]', 'two')}",
            "--scheduler-name=c",
        ],
        "the configuration has 2 profiles",
    ),
    "kubeconfig not there": (lambda w: ["--kubeconfig=/nowhere/config"], "kubeconfig /nowhere/config: no such file"),
    "kubeconfig no YAML": (lambda w: [f"--kubeconfig={w.file('{')}"], "kubeconfig"),
    "no such context": (lambda w: [w.good(), "--context=other"], "other"),
    "nobody listens": (lambda w: [w.server(f"https://127.0.0.1:{free_ports(1)[0]}")], "cannot reach https://127.0.0.1"),
    "not a server of ours": (lambda w: [w.user(token="wrong")], "Unauthorized"),
    "certificate expired": (lambda w: [w.user(**w.expired())], "expired"),
    "no namespace for the lease": (
        lambda w: [w.good(), "--leader-elect-resource-namespace=nowhere"],
        'the namespace "nowhere" of the lease does not exist',
    ),
    "key without certificate": (lambda w: [w.good(), "--tls-private-key-file=/x"], "belong together"),
    "certificate not there": (
        lambda w: [
            *(w.good(), "--leader-elect=false", "--secure-port=1"),
            *("--tls-private-key-file=/x", "--tls-cert-file=/y"),
        ],
        "cannot use the certificate /y",
    ),
    "health address wrong": (
        lambda w: [w.good(), "--leader-elect=false", "--health-bind-address=here"],
        '"here" is not host:port',
    ),
}


@pytest.mark.parametrize("case", list(CASES))
def test_what_is_wrong_is_one_line(case: str, plane: ControlPlane, tmp_path: Path) -> None:
    options, expected = CASES[case]
    code, said = run(*options(Wrong(plane, tmp_path)))
    assert code == 1, said
    lines = [line for line in said.splitlines() if '"Configuration" note' not in line]
    assert len(lines) == 1, said
    assert lines[0].startswith("Error: ")
    assert expected in lines[0]


def test_nobody_is_told_all_that_is_missing(plane: ControlPlane) -> None:
    code, said = run(f"--kubeconfig={plane.kubeconfig('nobody')}", "--leader-elect-resource-namespace=here")
    assert code == 1
    assert "does not allow us to: list nodes, watch nodes," in said
    assert "create pods/binding, get leases.coordination.k8s.io in here" in said
    assert "Traceback" not in said


def test_as_installed_it_schedules(installed: Path, scheduler: Start, cluster: ClusterClient, namespace: str) -> None:
    """With the service account and the rights of deploy/, leader election included."""
    make_nodes(cluster, a_node("n1"))
    program = scheduler("--leader-elect=true", kubeconfig=installed)
    cluster.create(a_pod("one", "1"), namespace)
    cluster.create(a_pod("large", "9"), namespace)
    cluster.until(
        pods(namespace),
        lambda seen: list(placed(seen)) == ["one"] and bool(condition(seen, "large")),
        "one is bound, the other told why not",
    )
    program.stop()
    assert "rights" not in program.said()
    assert [each["reason"] for each in events(cluster, namespace, "one")] == ["Scheduled"]
    assert program.code == 0


def without(cluster: ClusterClient, resource: str, verb: str) -> None:
    """A copy of kube-scheduler's role for `somebody` that lacks one verb."""
    role = cluster.get(f"{CLUSTER_ROLES}/system:kube-scheduler")
    more = cluster.get(f"{CLUSTER_ROLES}/system:volume-scheduler")
    rules = []
    for rule in role["rules"] + more["rules"]:
        concerned = resource in rule.get("resources", [])
        verbs = [each for each in rule["verbs"] if not (concerned and each in (verb, "*"))]
        rules.append({**rule, "verbs": verbs}) if verbs else None
    name = f"e2e-without-{verb}-{resource.replace('/', '-')}"
    cluster.create({**role, "metadata": {"name": name}, "rules": rules})
    subject = {"kind": "User", "name": "somebody", "apiGroup": "rbac.authorization.k8s.io"}
    reference = {"kind": "ClusterRole", "name": name, "apiGroup": "rbac.authorization.k8s.io"}
    kind = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding"}
    cluster.create({**kind, "metadata": {"name": name}, "roleRef": reference, "subjects": [subject]})


def withdraw(cluster: ClusterClient) -> None:
    for path in (CLUSTER_BINDINGS, CLUSTER_ROLES):
        for name in cluster.objects(path):
            if name.startswith("e2e-without-"):
                cluster.delete(f"{path}/{name}")


@pytest.mark.parametrize(
    ("resource", "verb", "expected"),
    [
        pytest.param("nodes", "watch", "watch nodes", id="a watch"),
        pytest.param("persistentvolumeclaims", "list", "list persistentvolumeclaims", id="a list"),
        pytest.param("pods/binding", "create", "create pods/binding", id="the bind itself"),
    ],
)
def test_a_right_that_is_missing_is_named_at_the_start(
    resource: str, verb: str, expected: str, plane: ControlPlane, cluster: ClusterClient
) -> None:
    without(cluster, resource, verb)
    try:
        code, said = run(f"--kubeconfig={plane.kubeconfig('somebody')}", "--leader-elect=false")
        assert code == 1
        assert expected in said.splitlines()[-1]
        assert "Traceback" not in said
    finally:
        withdraw(cluster)


def test_a_right_that_is_taken_away_later_is_told_by_an_event(
    plane: ControlPlane, scheduler: Start, cluster: ClusterClient, namespace: str
) -> None:
    without(cluster, "nothing", "nothing")
    program = scheduler(kubeconfig=plane.kubeconfig("somebody"))
    withdraw(cluster)
    without(cluster, "pods/binding", "create")
    try:
        make_nodes(cluster, a_node("n1"))
        cluster.create(a_pod("one", "1"), namespace)
        path = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
        seen = cluster.until(path, bool, "an event says why")
        note = next(iter(seen.values()))["note"]
        assert note.startswith(
            'running Bind plugin "DefaultBinder": pods "one" is forbidden: User "somebody" cannot create'
        )
        assert program.running
    finally:
        withdraw(cluster)
