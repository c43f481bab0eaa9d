"""Programs that were written for a real API server, against the embedded one: kubectl, and kube-scheduler.

The strongest proof that it is a faithful API: nobody told them.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubenexus.testing.controlplane import ControlPlane, ManagedProcess, ProcessGroup
from tests.contract.http import Http
from tests.contract.record import DATA, kinds, lines, schemas
from tests.e2e.manifests import a_deployment

WEB = (
    a_deployment(2, 'containers: [{name: c, image: "nginx:1"}]')
    + """---
apiVersion: v1
kind: Pod
metadata: {name: one, labels: {app: one}}
spec: {containers: [{name: c, image: "nginx:1", resources: {requests: {cpu: 100m}}}]}
"""
)
EVENT = """
apiVersion: events.k8s.io/v1
kind: Event
metadata: {{name: {name}, namespace: default}}
regarding: {{kind: Pod, name: one, namespace: default}}
eventTime: "2026-01-01T00:00:00.000000Z"
reportingController: contract.io/x
reportingInstance: i
action: A
reason: {name}
type: Normal
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {{name: {name}, labels: {{app: spread}}}}
spec:
  containers: [{{name: c, image: i, resources: {{requests: {{cpu: "2"}}}}}}]
  topologySpreadConstraints:
  - {{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule,
     labelSelector: {{matchLabels: {{app: spread}}}}}}
"""
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {{kubeconfig: {kubeconfig}, contentType: application/json, acceptContentTypes: application/json}}
"""


class Box:
    """`kubenexus cluster serve`, as a user starts it, and programs that speak to it."""

    def __init__(self, folder: Path, assets: Path, *options: str) -> None:
        self.folder, self.assets = folder, assets
        self.family = ProcessGroup(folder)
        self.kubeconfig = folder / "kubeconfig"
        command = [sys.executable, "-m", "kubenexus", "cluster", "serve", "--port=0"]
        self.server = self.family.start([*command, f"--kubeconfig-out={self.kubeconfig}", *options], "cluster")
        self.server.until(lambda: "Ctrl-C" in self.server.said())

    def kubectl(self, *arguments: str, stdin: str = "", fails: bool = False) -> str:
        files = [f"--kubeconfig={self.kubeconfig}", f"--cache-dir={self.folder / 'cache'}"]
        command = [str(self.assets / "kubectl"), *files, *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False, timeout=60)
        assert bool(done.returncode) is fails, f"kubectl {arguments}: {done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def agents(self, *options: str) -> ManagedProcess:
        command = [sys.executable, "-m", "kubenexus", "agents", f"--kubeconfig={self.kubeconfig}", *options]
        program = self.family.start(command, "agents")
        program.until(lambda: "agents at work" in program.said())
        return program


@pytest.fixture
def box(tmp_path: Path, assets: Path) -> Iterator[Box]:
    opened = Box(tmp_path, assets)
    yield opened
    opened.family.close()


def test_kubectl_sorts_events_by_a_time_that_they_lack(box: Box) -> None:
    """Events of events.k8s.io, which schedulers write, have no lastTimestamp."""
    for name in ("one", "two"):
        box.kubectl("create", "-f-", stdin=EVENT.format(name=name))
    for field in (".lastTimestamp", ".metadata.creationTimestamp"):
        seen = box.kubectl("get", "events", f"--sort-by={field}").splitlines()
        assert sorted(line.split()[2] for line in seen[1:]) == ["one", "two"]


def test_kubectl_works_as_always(box: Box) -> None:
    kubectl = box.kubectl
    assert "deployment.apps/web created" in kubectl("apply", "--filename=-", stdin=WEB)
    assert "deployment.apps/web unchanged" in kubectl("apply", "--filename=-", stdin=WEB)
    assert "deployment.apps/web configured" in kubectl("apply", "-f-", stdin=WEB.replace("replicas: 2", "replicas: 3"))
    assert kubectl("get", "deploy", "web").split("\n")[1].split()[:2] == ["web", "0/3"]
    kubectl("scale", "deployment/web", "--replicas=5")
    assert kubectl("get", "deploy", "web", "-ojsonpath={.spec.replicas}") == "5"
    wide = kubectl("get", "pods", "-owide").split("\n")
    assert wide[0].split()[:6] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP"]
    assert wide[1].split()[:3] == ["one", "0/1", "Pending"]
    described = kubectl("describe", "pod", "one")
    assert "QoS Class:" in described
    assert "node.kubernetes.io/not-ready:NoExecute op=Exists for 300s" in described
    kubectl("label", "pod", "one", "tier=front")
    assert kubectl("get", "pods", "-l", "tier=front", "-oname").strip() == "pod/one"
    assert "pod/one condition met" in kubectl("wait", "--for=jsonpath={.status.phase}=Pending", "pod/one")
    assert "List of containers" in kubectl("explain", "pod.spec.containers")
    assert "unknown field" in kubectl("apply", "-f-", stdin=WEB.replace("replicas:", "replicaz:"), fails=True)
    assert "no container" in kubectl("logs", "one", fails=True)
    assert "serverside-applied" in kubectl("apply", "--server-side", "--force-conflicts", "-f-", stdin=WEB)
    assert 'pod "one" deleted' in kubectl("delete", "pod", "one")
    assert "not found" in kubectl("get", "pod", "one", fails=True)


@pytest.mark.parametrize("command", [["apply"], ["apply", "--server-side"], ["create"]], ids=" ".join)
def test_kubectl_names_a_kind_that_is_not_served(box: Box, command: list[str]) -> None:
    unknown = "{apiVersion: example.com/v1, kind: Foo, metadata: {name: x}}"
    said = box.kubectl(*command, "-f-", stdin=unknown, fails=True)
    assert 'no matches for kind "Foo" in version "example.com/v1"' in said


def test_kubectl_applies_a_list(box: Box) -> None:
    several = "{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: ConfigMap, metadata: {name: one}}]}"
    assert "configmap/one created" in box.kubectl("apply", "-f-", stdin=several)


def test_kubectl_creates_in_protobuf(box: Box) -> None:
    """What kubectl knows the type of it does not send as JSON."""
    kubectl = box.kubectl
    kubectl("create", "namespace", "pb")
    kubectl("config", "set-context", "--current", "--namespace=pb")
    kubectl("create", "deployment", "web", "--image=i:1", "--replicas=0", "--port=80")
    spec = json.loads(kubectl("get", "deployment", "web", "-ojson"))["spec"]
    assert spec["replicas"] == 0
    assert "creationTimestamp" not in spec["template"]["metadata"]
    container = spec["template"]["spec"]["containers"][0]
    assert (container["image"], container["ports"]) == ("i:1", [{"containerPort": 80, "protocol": "TCP"}])
    kubectl("create", "configmap", "some", "--from-literal=a=b")
    assert kubectl("get", "configmap", "some", "-ojsonpath={.data.a}") == "b"
    kubectl("create", "poddisruptionbudget", "half", "--selector=app=web", "--min-available=50%")
    assert kubectl("get", "pdb", "half", "-ojsonpath={.spec.minAvailable}") == "50%"
    kubectl("create", "job", "once", "--image=i")
    assert kubectl("auth", "can-i", "get", "pods").strip() == "yes"


def test_kubectl_watches(box: Box) -> None:
    files = [f"--kubeconfig={box.kubeconfig}", f"--cache-dir={box.folder / 'cache'}"]
    watching = box.family.start([str(box.assets / "kubectl"), *files, "get", "pods", "--watch"], "watch")
    box.kubectl("run", "one", "--image=i")
    watching.until(lambda: "one" in watching.said())
    box.kubectl("label", "pod", "one", "x=y")
    box.kubectl("delete", "pod", "one")
    watching.until(lambda: watching.said().count("one ") >= 3)


def test_pods_run_and_a_node_is_drained(box: Box) -> None:
    box.agents("--nodes=2")
    assert [line.split()[1] for line in box.kubectl("get", "nodes").strip().split("\n")[1:]] == ["Ready"] * 2
    box.kubectl("apply", "-f-", stdin=POD.format(name="one").replace("spec:\n", "spec:\n  nodeName: agent-0\n"))
    box.kubectl("wait", "--for=condition=Ready", "pod/one", "--timeout=20s")
    box.kubectl("drain", "agent-0", "--force", "--grace-period=1", "--timeout=30s")
    assert "SchedulingDisabled" in box.kubectl("get", "node", "agent-0")
    assert "not found" in box.kubectl("get", "pod", "one", fails=True)


def test_a_deployment_is_rolled_out_scaled_and_rolled_back(tmp_path: Path, assets: Path) -> None:
    """Controllers, nodes and our scheduler: what a user of a real cluster does all day."""
    box = Box(tmp_path, assets, "--nodes=4")
    try:
        command = [sys.executable, "-m", "kubenexus", "run", f"--kubeconfig={box.kubeconfig}"]
        box.family.start([*command, "--leader-elect=false", "--secure-port=0"], "scheduler")
        kubectl = box.kubectl
        ours = WEB.replace(
            "{containers", "{schedulerName: kubenexus-scheduler, terminationGracePeriodSeconds: 1, containers"
        )
        kubectl("apply", "-f-", stdin=ours)
        assert "successfully rolled out" in kubectl("rollout", "status", "deployment/web", "--timeout=40s")
        kubectl("scale", "deployment", "web", "--replicas=5")
        kubectl("wait", "--for=jsonpath={.status.readyReplicas}=5", "deployment/web", "--timeout=30s")
        assert "condition met" in kubectl("wait", "--for=condition=Available", "deployment/web", "--timeout=30s")
        kubectl("set", "image", "deployment/web", "c=nginx:2")
        assert "successfully rolled out" in kubectl("rollout", "status", "deployment/web", "--timeout=40s")
        kubectl("rollout", "undo", "deployment/web")
        kubectl("rollout", "status", "deployment/web", "--timeout=40s")
        assert kubectl("get", "rs", "-ojsonpath={.items[*].spec.replicas}").split() in (["0", "5"], ["5", "0"])
        assert "Scaled up replica set web-" in kubectl("describe", "deployment", "web")
        assert "deleted" in kubectl("delete", "deployment", "web", "--cascade=foreground", "--timeout=60s")
        assert "No resources found" in kubectl("get", "pods", "-l", "app=web")
    finally:
        box.family.close()


def test_a_namespace_goes_with_all_that_is_in_it(box: Box) -> None:
    namespace = '{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"short"}}'
    box.kubectl("apply", "-f-", stdin=namespace)
    box.kubectl("apply", "--namespace=short", "-f-", stdin=WEB)
    box.kubectl("delete", "namespace", "short", "--timeout=20s")
    assert "No resources found" in box.kubectl("get", "pods,deployments", "--namespace=short")


def test_kube_scheduler_schedules(box: Box) -> None:
    box.agents("--nodes=3")
    config = box.folder / "scheduler.yaml"
    config.write_text(CONFIG.format(kubeconfig=box.kubeconfig), encoding="utf-8")
    box.family.start([str(box.assets / "kube-scheduler"), f"--config={config}", "--secure-port=0"])
    for name in ("a", "b", "c"):
        box.kubectl("apply", "-f-", stdin=POD.format(name=name))
    box.kubectl("wait", "--for=condition=Ready", "pod", "--all", "--timeout=40s")
    nodes = box.kubectl("get", "pods", "-ojsonpath={.items[*].spec.nodeName}").split()
    assert sorted(nodes) == ["agent-0", "agent-1", "agent-2"]
    hopeless = POD.format(name="hopeless").replace("spec:\n", "spec:\n  nodeSelector: {no: where}\n")
    box.kubectl("apply", "-f-", stdin=hopeless)
    box.kubectl("wait", "--for=condition=PodScheduled=false", "pod/hopeless", "--timeout=20s")
    assert "0/3 nodes are available" in box.kubectl("describe", "pod", "hopeless")


def test_kube_scheduler_tells_our_story(assets: Path) -> None:
    command = [sys.executable, "-m", "kubenexus", "demo", "--scheduler=kube"]
    env = {**os.environ, "KUBEBUILDER_ASSETS": str(assets)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, env=env)
    assert (done.returncode, done.stderr) == (0, "")
    assert "scheduler: kube-scheduler, process " in done.stdout
    packed = re.search(r"all succeeded, on at most ([0-9]+) of 12 nodes at once\n", done.stdout)
    assert packed is not None
    assert int(packed[1]) > 8  # it spreads a batch; 4 nodes would hold it
    assert "6. Tenants get the hardware of their tier: not told: kube-scheduler knows no tenants" in done.stdout
    assert "9. Two gangs want the same GPUs: not told: kube-scheduler places" in done.stdout
    assert "12. A hopeless pod is told why: 16 GPUs on one node? 0/20 nodes are available" in done.stdout


def test_a_token_opens_the_door(tmp_path: Path, assets: Path) -> None:
    box = Box(tmp_path, assets, "--token=secret")
    try:
        assert "default" in box.kubectl("get", "namespaces")
        text = box.kubeconfig.read_text(encoding="utf-8")
        box.kubeconfig.write_text(text.replace('"secret"', '"wrong"'), encoding="utf-8")
        assert "Unauthorized" in box.kubectl("get", "namespaces", fails=True) or "logged in" in box.server.said()
    finally:
        box.family.close()


def test_the_files_are_what_the_real_server_says(plane: ControlPlane) -> None:
    """`python -m tests.contract.record` writes them anew."""
    server = Http.of_plane(plane)

    def ask(path: str, accept: str) -> Any:
        return server.ask("GET", path, accept=accept).json

    assert lines(kinds(ask)) == (DATA / "kinds.json").read_text(encoding="utf-8")
    assert lines(schemas(ask)) == (DATA / "schemas.json").read_text(encoding="utf-8")
    server.close()
