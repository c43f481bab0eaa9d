"""`make manifests`: writes the plain manifest from the chart, for people without Helm.

python -m tests.deploy.manifests deploy/kubenexus-scheduler.yaml
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
# What only Helm needs.
OF_HELM = re.compile(
    r"^ *(?:helm\.sh/chart|app\.kubernetes\.io/(?:managed-by|instance)|checksum/config): .*\n"
    r"|^ *# A changed configuration restarts the pods\.\n|^# Source: .*\n",
    re.MULTILINE,
)


def plain() -> str:
    """Returns the chart with its default values, as one file of objects."""
    helm = str(build.provide())
    values = "--set=namespace.create=true,crds.install=false"
    wish = ["--namespace=kubenexus-system", "--kube-version=1.37.0", values]
    done = subprocess.run(
        [helm, "template", "kubenexus", str(CHART), *wish], capture_output=True, text=True, check=True
    )
    text = OF_HELM.sub("", done.stdout)
    text = re.sub(r"^ *annotations:\n(?= *spec:)", "", text, flags=re.MULTILINE)
    # The namespace has to be there first.
    parts = [part.strip("\n") for part in re.split(r"^---\n", text, flags=re.MULTILINE) if part.strip()]
    parts.sort(key=lambda part: "\nkind: Namespace\n" not in f"\n{part}\n")
    return HEAD + "\n---\n".join(parts) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(plain(), encoding="utf-8")
