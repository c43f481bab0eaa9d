"""Every documented command that ends by itself is run: kubectl and kubenexus against a real API server.

What stays (servers), needs another program (helm, docker) or a part that is not running here is run by the test that
`ELSEWHERE` names. A command that is in neither fails here, so a page cannot show one that no test has run.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubenexus.testing.controlplane import ClusterClient, ControlPlane
from tests.e2e.scheduling import a_node, a_pod, make_nodes
from tests.e2e.test_chart import ours
from tests.repository.docs.blocks import Command, commands

ROOT = Path(__file__).parents[2]
# The words that a command begins with, and the file with the test that runs it.
ELSEWHERE = {
    "make": ".ci/run",
    "docker": "tests/e2e/test_image.py",
    "helm": "tests/e2e/test_chart.py",
    "pip install": "tests/framework/test_quiet_nodes.py",
    "scripts/label-node.sh": "tests/discovery/test_script.py",
    "curl": "tests/e2e/test_live_api.py",
    "export": "tests/e2e/test_start_page.py",
    "jq": "tests/repository/test_admission_example.py",
    "python -m bench.kueue_perf": "tests/bench/test_kueue_perf.py",
    "python -m bench.live_api": "tests/bench/test_live_api.py",
    "python -m kubenexus.testing.oracle.sample": "tests/oracle/test_sample.py",
    "python -m kubenexus.testing.numa_oracle.sample": "tests/numa_oracle/test_judge.py",
    "kubectl -n kubenexus-system port-forward": "tests/e2e/test_live_api.py",
    "kubectl run train": "tests/e2e/test_webhook.py",
    "kubectl nexus decisions": "tests/cli/test_scheduler_commands.py",
    "kubectl nexus eta": "tests/cli/test_eta.py",
    "kubectl nexus top": "tests/cli/test_scheduler_commands.py",
    "kubenexus agents": "tests/e2e/test_agents.py",
    "kubenexus cluster serve": "tests/e2e/test_start_page.py",
    "kubenexus discover": "tests/e2e/test_discovery.py",
    "kubenexus replay": "tests/app/test_recording.py",
    "kubenexus reserve": "tests/e2e/test_reservations.py",
    "kubenexus run": "tests/e2e/test_scheduling.py",
    "kubenexus simulate openb pods": "tests/sim/replay/test_start_forecasts.py",
    "kubenexus simulate philly": "tests/sim/replay/test_command.py",
    "kubenexus simulate scheduler-perf examples/workloads --label": "tests/sim/perf/test_upstream.py",
    "kubenexus simulate scheduler-perf path/to": "tests/e2e/test_upstream_workloads.py",
    "kubenexus top queues": "tests/e2e/test_queues.py",
    "kubenexus web": "tests/web",
    "kubenexus webhook": "tests/e2e/test_webhook.py",
}
# Files that a reader has, and what stands in for them.
FILES = {
    "dump.json": "examples/why/cluster.json",
    "my-config.yaml": "examples/config/minimal.yaml",
    "train.yaml": "examples/placement/job.yaml",
}
PACKED = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: packed
"""
# Of explanations: it would not be placed; of the doctor: something is wrong with the cluster of these tests; of a
# simulation: the limit is exceeded.
CODES = {"--fail-if": {0, 3}, "why": {0, 2}, "explain": {0, 2}, "whatif": {0, 2}, "doctor": {0, 2}}
NODES = ("n1", "gpu-shared-1", "gpu-gold-1", "gpu-1", "gpu-7")
NAMESPACES = ("ml", "web", "research", "analytics", "kubenexus-system")
GANG = {"pod-group.scheduling.kubenexus.io/name": "llama", "pod-group.scheduling.kubenexus.io/min-available": "2"}
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PODS = {"default": ("my-pod", "llama-0", "train"), "ml": ("llama-0",)}


def is_elsewhere(command: Command) -> bool:
    return any(plain(command).startswith(words) for words in ELSEWHERE)


def plain(command: Command) -> str:
    return " ".join(program_and_arguments(command))


def program_and_arguments(command: Command) -> list[str]:
    words = [command.words[0].removeprefix(".venv/bin/"), *command.words[1:]]
    if words[:2] == ["source", "completion"]:  # what is within <( ... )
        return ["kubenexus", "completion", "bash"]
    return words


ALL = list(commands())
HERE = [each for each in ALL if not is_elsewhere(each)]


def test_what_is_run_elsewhere_is_run_there() -> None:
    assert [path for path in ELSEWHERE.values() if not (ROOT / path).exists()] == []
    unused = [words for words in ELSEWHERE if not any(plain(each).startswith(words) for each in ALL)]
    assert unused == [], "no page shows these any longer"
    assert len(HERE) >= 60


@pytest.fixture
def reader(plane: ControlPlane, cluster: ClusterClient, assets: Path, tmp_path: Path) -> Iterator["Reader"]:
    """Someone with a cluster, a checkout and the files of the examples."""
    make_nodes(cluster, *(a_node(name) for name in NODES))
    namespaces = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in NAMESPACES]
    plane.kubectl("apply", "--filename=-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": namespaces}))
    plane.kubectl("apply", f"--filename={ROOT / 'examples/numa/crd.yaml'}")
    for namespace, names in PODS.items():
        for name in names:
            cluster.create(a_pod(name, "1", metadata={"labels": GANG}), namespace)
    yield Reader(plane, assets, tmp_path)
    plane.kubectl("delete", "pods,jobs,deployments", "--all", "--namespace=default", "--grace-period=0", "--force")
    discovery = ROOT / "deploy/kubenexus-discovery.yaml"  # other tests count what is left of an install
    plane.kubectl("delete", "--ignore-not-found", "--wait=false", f"--filename={discovery}")
    for path in ours(cluster):
        cluster.delete(path)
    crds = [name for name in cluster.objects(CRDS) if "kubenexus.io" in name or "topology.node" in name]
    for name in crds:
        cluster.delete(f"{CRDS}/{name}")


class Reader:
    def __init__(self, plane: ControlPlane, assets: Path, folder: Path) -> None:
        self._kubeconfig, self._folder = plane.kubeconfig(), folder
        for name in ("examples", "deploy", "tests"):
            (folder / name).symlink_to(ROOT / name)
        for name, source in FILES.items():
            shutil.copy(ROOT / source, folder / name)
        (folder / "packed.yaml").write_text(PACKED)
        trace = (ROOT / "examples/traces/slots.jsonl").read_text(encoding="utf-8").splitlines()
        (folder / "jobs.jsonl").write_text("".join(f"{line}\n" for line in trace if json.loads(line)["kind"] != "node"))
        programs = f"{assets}:{Path(sys.executable).parent}"
        self._environment = os.environ | {
            "KUBECONFIG": str(self._kubeconfig),
            "PATH": f"{programs}:{os.environ['PATH']}",
        }

    def run(self, command: Command) -> str:
        """Runs a command. Returns what is wrong, "" if nothing is."""
        words = [self._here(word) for word in self._with_real_pod(program_and_arguments(command))]
        if "rollout" in words:
            words.append("--watch=false")
        done = subprocess.run(
            words, cwd=self._folder, env=self._environment, capture_output=True, text=True, check=False, timeout=120
        )
        allowed = next((codes for word, codes in CODES.items() if word in words), {0})
        return "" if done.returncode in allowed else f"{' '.join(words)}: {done.returncode}: {done.stderr[-400:]}"

    def _here(self, word: str) -> str:
        return word.replace("/tmp/kubeconfig", str(self._kubeconfig))

    def _with_real_pod(self, words: list[str]) -> list[str]:
        """A dump of a reader has the pod that the page speaks of; the one of the examples has this one."""
        if "dump.json" in words:
            for i, word in enumerate(words[:-1]):
                if word == "--pod":
                    words[i + 1] = "web/report"
            words = ["ml/job/tune" if word == "job/train" else word for word in words]
        return words


def test_every_documented_command_works(reader: Any) -> None:
    seen: set[str] = set()
    wrong = []
    for command in HERE:
        words = plain(command)
        if words not in seen:
            seen.add(words)
            problem = reader.run(command)
            wrong += [f"{command.block.title}: {problem}"] if problem else []
    assert wrong == [], "\n".join(wrong)


def test_a_command_that_fails_is_found(reader: Any) -> None:
    (first, *_) = HERE
    bad = first._replace(words=("kubectl", "get", "no-such-kind"))
    assert re.search(r"kubectl get no-such-kind: 1: .*no-such-kind", reader.run(bad))
