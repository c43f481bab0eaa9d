"""The Helm chart with the real helm and the real API server: installed, used, upgraded, uninstalled."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubenexus.base.clock import WallClock
from kubenexus.testing.controlplane import ClusterClient, ControlPlane, ManagedProcess
from tests.deploy.manifests import CHART, plain
from tests.e2e.controlplane.build import CannotBuild
from tests.e2e.helm import build
from tests.e2e.scheduling import Start, a_node, a_pod, make_nodes, placed, pods

MANIFEST = CHART.parents[1] / "kubenexus-scheduler.yaml"
HOME = "kubenexus-system"
EXAMPLE = CHART.parents[2] / "examples" / "gangs" / "job.yaml"
CLOCK, FIVE_MINUTES = WallClock(), 300.0
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
QUEUES = "queues.scheduling.kubenexus.io"
CRD = "resourcereservations.scheduling.kubenexus.io"
GANG = {"pod-group.scheduling.kubenexus.io/name": "eight", "pod-group.scheduling.kubenexus.io/min-available": "8"}


class Helm:
    """helm with the administrator's kubeconfig."""

    def __init__(self, program: Path, kubeconfig: Path) -> None:
        self._program, self._kubeconfig = program, kubeconfig

    def __call__(self, *words: str) -> tuple[int, str]:
        command = [str(self._program), f"--kubeconfig={self._kubeconfig}", f"--namespace={HOME}", *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        return done.returncode, done.stdout + done.stderr

    def succeeds(self, *words: str) -> str:
        code, said = self(*words)
        assert code == 0, said
        return said

    def template(self, *values: str) -> list[dict[str, Any]]:
        said = self.succeeds("template", "kubenexus", str(CHART), "--kube-version=1.37.0", *values)
        return [each for each in yaml.safe_load_all(said) if each]


@pytest.fixture
def helm(plane: ControlPlane) -> Helm:
    try:
        return Helm(build.provide(), plane.kubeconfig())
    except CannotBuild as problem:
        pytest.fail(str(problem), pytrace=False)


@pytest.fixture
def release(helm: Helm, cluster: ClusterClient) -> Iterator[str]:
    """The chart is installed under this name."""
    helm.succeeds("install", "kubenexus", str(CHART), "--create-namespace")
    yield "kubenexus"
    helm("uninstall", "kubenexus", "--ignore-not-found")
    assert cluster


def ours(cluster: ClusterClient) -> set[str]:
    """All objects that the chart makes, by path and name."""
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    collections = [
        f"{rbac}/clusterroles",
        f"{rbac}/clusterrolebindings",
        f"{rbac}/namespaces/{HOME}/roles",
        f"{rbac}/namespaces/{HOME}/rolebindings",
        f"{rbac}/namespaces/kube-system/rolebindings",
        f"/api/v1/namespaces/{HOME}/serviceaccounts",
        f"/api/v1/namespaces/{HOME}/services",
        f"/api/v1/namespaces/{HOME}/configmaps",
        f"/apis/apps/v1/namespaces/{HOME}/deployments",
        f"/apis/policy/v1/namespaces/{HOME}/poddisruptionbudgets",
    ]
    return {f"{path}/{name}" for path in collections for name in cluster.objects(path) if "kubenexus" in name}


def test_the_plain_manifest_is_the_chart_with_its_default_values(helm: Helm) -> None:
    assert plain() == MANIFEST.read_text(encoding="utf-8"), "run `make manifests`"
    assert helm


def test_a_gang_of_eight_runs_and_survives_an_upgrade_and_an_uninstall_leaves_nothing(
    helm: Helm, release: str, plane: ControlPlane, cluster: ClusterClient, namespace: str, scheduler: Start
) -> None:
    make_nodes(cluster, *(a_node(f"n{i}") for i in range(4)))
    account = plane.service_account_kubeconfig(HOME, "kubenexus-scheduler")
    config = cluster.get(f"/api/v1/namespaces/{HOME}/configmaps/kubenexus-scheduler")["data"]["config.yaml"]
    file = account.parent / "chart-config.yaml"
    file.write_text(config)
    # The pods of the Deployment need an image; the process they would run has the same account and configuration.
    first = scheduler(f"--config={file}", "--leader-elect=true", kubeconfig=account)
    for i in range(8):
        cluster.create(a_pod(f"w{i}", "1", metadata={"labels": GANG}), namespace)
    before = placed(cluster.until(pods(namespace), lambda all: len(placed(all)) == 8, "all eight are bound"))

    helm.succeeds("upgrade", release, str(CHART), "--set=logLevel=2,replicas=3")
    assert cluster.get(f"/apis/apps/v1/namespaces/{HOME}/deployments/kubenexus-scheduler")["spec"]["replicas"] == 3
    first.stop()
    scheduler(f"--config={file}", "--leader-elect=true", kubeconfig=account)
    assert placed(cluster.objects(pods(namespace))) == before

    assert ours(cluster)
    helm.succeeds("uninstall", release)
    assert ours(cluster) == set()
    for name in (CRD, "queues.scheduling.kubenexus.io"):
        assert name in cluster.objects(CRDS), "kept, with the objects of users"
        cluster.delete(f"{CRDS}/{name}")
    assert placed(cluster.objects(pods(namespace))) == before


def test_from_template_and_apply_to_a_running_gang_in_under_five_minutes_and_back(
    helm: Helm,
    plane: ControlPlane,
    cluster: ClusterClient,
    namespace: str,
    controllers: ManagedProcess,
    agents: Start,
    scheduler: Start,
    tmp_path: Path,
) -> None:
    """`helm template | kubectl apply`, a Job of eight by the controller manager, upgrade, `kubectl delete`. The image
    cannot be pulled here, so the process that its pods would run is started with their account and configuration."""
    before = everything(plane)
    began = CLOCK.now()
    agents("--nodes=2", "--cpu=8")
    applied = applied_chart(helm, plane, tmp_path / "first.yaml")
    account = plane.service_account_kubeconfig(HOME, "kubenexus-scheduler")
    config = tmp_path / "config.yaml"
    config.write_text(cluster.get(f"/api/v1/namespaces/{HOME}/configmaps/kubenexus-scheduler")["data"]["config.yaml"])
    scheduler(f"--config={config}", "--leader-elect=true", kubeconfig=account)
    plane.kubectl("apply", f"--namespace={namespace}", f"--filename={EXAMPLE}")
    cluster.until(pods(namespace), lambda all: running(all) == 8, "a gang of eight runs", seconds=FIVE_MINUTES)
    assert CLOCK.now() - began < FIVE_MINUTES
    assert controllers.running

    upgraded = applied_chart(helm, plane, tmp_path / "second.yaml", "--set=replicas=3,logLevel=2")
    assert running(cluster.objects(pods(namespace))) == 8
    plane.kubectl("delete", "--wait=true", "--timeout=60s", "--ignore-not-found", f"--filename={upgraded}")
    assert applied != upgraded
    crds = {f"customresourcedefinition.apiextensions.k8s.io/{name}" for name in (CRD, QUEUES)}
    left = everything(plane) - before
    for each in left & crds:
        plane.kubectl("delete", each)
    # The API server makes an APIService for the group of the CRDs, and removes it with them.
    assert {each for each in left if "kubenexus" in each and not each.startswith("apiservice.")} == crds


def applied_chart(helm: Helm, plane: ControlPlane, file: Path, *values: str) -> Path:
    """Applies what `helm template` prints. Returns a file with all of it but the CRDs, which users keep."""
    objects = helm.template("--set=namespace.create=true", *values)
    objects.sort(key=lambda each: each["kind"] != "Namespace")
    file.write_text(yaml.safe_dump_all(objects))
    plane.kubectl("apply", "--validate=strict", f"--filename={file}")
    file.write_text(yaml.safe_dump_all([each for each in objects if each["kind"] != "CustomResourceDefinition"]))
    return file


def everything(plane: ControlPlane) -> set[str]:
    """Every object of every kind that can be listed, by kind and name, but those that come and go by themselves."""
    kinds = plane.kubectl("api-resources", "--verbs=list", "--output=name").split()
    skipped = {"events", "events.events.k8s.io", "leases.coordination.k8s.io", "pods", "jobs.batch"}
    listed = plane.kubectl(
        "get", ",".join(sorted(set(kinds) - skipped)), "--all-namespaces", "--output=name", "--ignore-not-found"
    )
    return set(listed.split())


def running(objects: Any) -> int:
    return sum(each["status"].get("phase") == "Running" for each in objects.values())


EVERYTHING = [
    "--set=metrics.serviceMonitor.enabled=true,metrics.prometheusRule.enabled=true,metrics.dashboard.enabled=true",
    "--set=networkPolicy.enabled=true,tlsSecretName=papers,logFormat=json,image.pullSecrets={one,two}",
    "--set=metrics.readers[0].kind=ServiceAccount,metrics.readers[0].name=prometheus,metrics.readers[0].namespace=m",
    "--set=nodeSelector.role=system,podLabels.team=infra,extraArgs={-v=2}",
    "--set=discovery.enabled=true,discovery.kubeletConfig=/var/lib/kubelet/config.yaml,discovery.runtimeClassName=nvidia",
]


def test_with_everything_on_the_server_accepts_what_it_knows(
    helm: Helm, plane: ControlPlane, cluster: ClusterClient, tmp_path: Path
) -> None:
    objects = helm.template(*EVERYTHING, "--set=namespace.create=true")
    operators = [each for each in objects if each["apiVersion"].startswith("monitoring.coreos.com/")]
    assert [each["kind"] for each in operators] == ["PrometheusRule", "ServiceMonitor"]
    file = tmp_path / "objects.yaml"
    known = [each for each in objects if each not in operators]
    file.write_text(yaml.safe_dump_all(sorted(known, key=lambda each: each["kind"] != "Namespace")))
    plane.kubectl("apply", "--validate=strict", f"--filename={file}")
    plane.kubectl("delete", "--wait=false", "--ignore-not-found", f"--filename={file}")
    assert cluster


WRONG = {
    "a typo": ("--set=replica=3", "replica"),
    "too few replicas": ("--set=replicas=0", "replicas"),
    "a word for a number": ("--set=replicas=two", "'/replicas': got string, want integer"),
    "a word for a switch": ("--set=web.enabled=yes", "'/web/enabled': got string, want boolean"),
    "an amount that is none": ("--set=resources.limits.memory=lots", "/resources/limits/memory"),
    "an amount of the webhook that is none": ("--set=webhook.resources.requests.cpu=-1", "/requests/cpu"),
    "a port that is none": ("--set=ports.secure=99999", "ports"),
    "a digest that is none": ("--set=image.digest=latest", "digest"),
    "a configuration of another kind": ("--set=config.kind=Policy", "kind"),
    "a policy that is none": ("--set=webhook.failurePolicy=Sometimes", "failurePolicy"),
    "a webhook whose certificate is not trusted": (
        "--set=webhook.enabled=true,webhook.certificate.mode=secret,webhook.certificate.secretName=papers",
        "webhook.certificate.mode secret needs secretName and caBundle",
    ),
    "a monitor without a service": (
        "--set=service.enabled=false,metrics.serviceMonitor.enabled=true",
        "metrics.serviceMonitor.enabled needs service.enabled",
    ),
}


@pytest.mark.parametrize(("values", "said"), WRONG.values(), ids=WRONG)
def test_wrong_values_are_refused_by_name(helm: Helm, values: str, said: str) -> None:
    code, output = helm("template", "kubenexus", str(CHART), values)
    assert code != 0
    assert said in output
