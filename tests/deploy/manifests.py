"""`make manifests`: writes the plain manifests from the chart, for people without Helm.

python -m tests.deploy.manifests deploy
"""

import re
import subprocess
import sys
from pathlib import Path

from tests.e2e.helm import build

CHART = Path(__file__).parents[2] / "deploy" / "helm" / "kubenexus"
HEAD = """\
# KubeNexus beside kube-scheduler: two replicas, of which one schedules. Pods choose it with
# `schedulerName: kubenexus-scheduler`; kube-scheduler goes on with all others.
#
#   docker build -t kubenexus:0.1.0 .        and bring the image to where your nodes find it
#   kubectl apply -f deploy/kubenexus-scheduler.yaml
#
# Made from deploy/helm/kubenexus by `make manifests`. A changed configuration needs a restart:
# kubectl rollout restart -n kubenexus-system deployment/kubenexus-scheduler
"""
DISCOVERY_HEAD = """\
# KubeNexus' discovery on every node (docs/discovery.md), beside the scheduler of kubenexus-scheduler.yaml:
#
#   kubectl apply -f deploy/kubenexus-discovery.yaml
#
# Made from deploy/helm/kubenexus by `make manifests`.
"""
# What only Helm needs.
OF_HELM = re.compile(
    r"^ *(?:helm\.sh/chart|app\.kubernetes\.io/(?:managed-by|instance)|checksum/config): .*\n"
    r"|^ *# A changed configuration restarts the pods\.\n|^# Source: .*\n",
    re.MULTILINE,
)


def plain() -> str:
    """Returns the chart with its default values, as one file of objects."""
    return HEAD + _objects("--set=namespace.create=true,crds.install=false")


def plain_discovery() -> str:
    """Returns the objects of discovery alone."""
    return DISCOVERY_HEAD + _objects("--set=discovery.enabled=true", "--show-only=templates/discovery.yaml")


def _objects(*values: str) -> str:
    helm = str(build.provide())
    wish = ["--namespace=kubenexus-system", "--kube-version=1.37.0", *values]
    done = subprocess.run(
        [helm, "template", "kubenexus", str(CHART), *wish], capture_output=True, text=True, check=True
    )
    text = OF_HELM.sub("", done.stdout)
    text = re.sub(r"^ *annotations:\n(?= *spec:)", "", text, flags=re.MULTILINE)
    # The namespace has to be there first.
    parts = [part.strip("\n") for part in re.split(r"^---\n", text, flags=re.MULTILINE) if part.strip()]
    parts.sort(key=lambda part: "\nkind: Namespace\n" not in f"\n{part}\n")
    return "\n---\n".join(parts) + "\n"


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    (folder / "kubenexus-scheduler.yaml").write_text(plain(), encoding="utf-8")
    (folder / "kubenexus-discovery.yaml").write_text(plain_discovery(), encoding="utf-8")
