"""Kueue beside a control plane without kubelets: its kinds, its process and its webhooks on loopback addresses.

    with Kueue(build.provide(), plane) as kueue:
        ...

The order matters. The kinds convert between versions by a webhook, so they name the port before Kueue listens there.
The webhooks fail closed, so they are created only once Kueue is ready: earlier they would stop every pod.
"""

import base64
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml

from kubenexus.app.http.serving_certificates import make_self_signed
from kubenexus.testing.controlplane import ClusterClient, ControlPlane, ManagedProcess, Object, free_ports
from kubenexus.webhook.certificates import certificates_in
from tests.e2e.kueue import build

HOST = "127.0.0.1"
START_SECONDS = 180.0  # beside other work
# Kinds that are stored in one version and served in two.
CONVERTED = frozenset({"localqueues", "clusterqueues", "cohorts", "workloads", "multikueueclusters"})
# Groups whose webhooks are created: the other kinds do not exist here.
GROUPS = frozenset({"", "batch", "kueue.x-k8s.io"})
SYSTEM = ("kube-system", "kueue-system")
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the definitions have 40,000 lines
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class Kueue:
    """One Kueue process. `settings` are further fields of its configuration."""

    def __init__(self, assets: Path, plane: ControlPlane, **settings: Any) -> None:
        self._assets, self._plane, self._settings = assets, plane, settings
        self._folder = plane.folder / "kueue"
        self._webhook_port, self._health_port = free_ports(2)
        self._authority = ""
        self._process: ManagedProcess | None = None

    def __enter__(self) -> Self:
        self._write_files()
        self._create_kinds(self._plane.cluster())
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def start(self) -> ManagedProcess:
        """Starts the process, also again after `stop`, and creates the webhooks once it is ready."""
        if self._process is None:
            environment = [f"KUBECONFIG={self._plane.kubeconfig()}", f"{build.CERTIFICATES}={self._folder}"]
            program = [str(self._assets / build.PROGRAM), f"--config={self._folder / 'config.json'}"]
            self._process = self._plane.family.start(["env", *environment, *program], "kueue")
        else:
            self._process.start()
        self._process.until(self._is_ready, START_SECONDS)
        for each in self._webhooks():
            self._plane.cluster().create(each)
        return self._process

    def stop(self) -> None:
        """Deletes the webhooks, which would stop every pod, and ends the process."""
        if self._process is not None:
            for each in self._webhooks():
                collection = f"{each['kind'].lower()}s"
                name = each["metadata"]["name"]
                self._plane.cluster().delete(f"/apis/admissionregistration.k8s.io/v1/{collection}/{name}")
            self._process.stop()

    @property
    def log(self) -> Path:
        return self._plane.folder / "kueue.log"

    # --- its files ------------------------------------------------------------------------------------------------

    def _write_files(self) -> None:
        self._folder.mkdir()
        pem = make_self_signed([HOST], 2).decode("ascii")
        (self._authority,) = certificates_in(pem)
        (self._folder / "tls.crt").write_text(self._authority)
        (self._folder / "tls.key").write_text(pem.replace(self._authority, ""))
        (self._folder / "config.json").write_text(json.dumps(self._configuration()))

    def _configuration(self) -> Object:
        return {
            "apiVersion": "config.kueue.x-k8s.io/v1beta2",
            "kind": "Configuration",
            "webhook": {"host": HOST, "port": self._webhook_port, "certDir": str(self._folder)},
            "metrics": {"bindAddress": "0"},
            "health": {"healthProbeBindAddress": f"{HOST}:{self._health_port}"},
            "leaderElection": {"leaderElect": False},
            "internalCertManagement": {"enable": False},
            "clientConnection": {"qps": 500, "burst": 500},
            "integrations": {"frameworks": ["pod", "batch/job"]},
            # Its visibility server wants an aggregated API.
            "featureGates": {"VisibilityOnDemand": False, "MultiKueue": False},
            **self._settings,
        }

    def _client_config(self, path: str) -> Object:
        bundle = base64.b64encode(self._authority.encode()).decode()
        return {"url": f"https://{HOST}:{self._webhook_port}{path}", "caBundle": bundle}

    # --- its objects ----------------------------------------------------------------------------------------------

    def _create_kinds(self, cluster: ClusterClient) -> None:
        names = []
        for file in sorted((self._assets / "crds").glob("*.yaml")):
            definition = yaml.load(
                file.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)
            )
            if definition["spec"]["names"]["plural"] in CONVERTED:
                webhook = {"clientConfig": self._client_config("/convert"), "conversionReviewVersions": ["v1"]}
                definition["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
            cluster.create(definition)
            names.append(definition["metadata"]["name"])
        cluster.until(CRDS, lambda all: all_established(all, names), "Kueue's kinds are served", seconds=START_SECONDS)

    def _webhooks(self) -> Iterator[Object]:
        text = (self._assets / "webhooks.yaml").read_text(encoding="utf-8")
        for item in yaml.safe_load_all(text):
            item["metadata"]["name"] = f"kueue-{item['metadata']['name']}"
            item["webhooks"] = [each for each in item["webhooks"] if GROUPS.issuperset(each["rules"][0]["apiGroups"])]
            for webhook in item["webhooks"]:
                webhook["clientConfig"] = self._client_config(webhook["clientConfig"]["service"]["path"])
                if "kueue.x-k8s.io" not in webhook["rules"][0]["apiGroups"]:
                    names = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": list(SYSTEM)}
                    webhook["namespaceSelector"] = {"matchExpressions": [names]}
            yield item

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://{HOST}:{self._health_port}/readyz", timeout=5):
                return True
        except (OSError, urllib.error.URLError):
            return False


def all_established(definitions: dict[str, Object], names: list[str]) -> bool:
    """Returns whether the server serves all these definitions."""
    return all(("Established", "True") in _conditions(definitions[name]) for name in names)


def _conditions(item: Object) -> set[tuple[str, str]]:
    return {(each["type"], each["status"]) for each in item["status"]["conditions"] or ()}
