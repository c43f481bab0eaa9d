"""Which pods are one class: those of one template, as the real controllers make them; and no others."""

from typing import Any

import msgspec
import pytest

from kubenexus.api.codec import decode_pod
from kubenexus.api.core import (
    Container,
    ContainerPort,
    ContainerStatus,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Pod,
    PodAffinityTerm,
    PodCondition,
    ResourceRequirements,
    RestartRule,
    VolumeMount,
)
from kubenexus.api.selectors import LabelSelector, LabelSelectorRequirement
from kubenexus.cycle.class_cache import ClassCache
from kubenexus.framework.pod_signature import PodSigner
from kubenexus.plugins import profile_plugins
from kubenexus.state.footprint import footprint_of
from kubenexus.testing.builders import HOSTNAME, a_container, a_node, a_pod
from kubenexus.testing.harness import a_ledger, run

SIGN = PodSigner(profile_plugins().reads).sign


def of_an_indexed_job(index: int) -> Pod:
    """As the Job controller makes them: index in labels, annotations, hostname and environment, a random name."""
    key = "batch.kubernetes.io/job-completion-index"
    field = {"fieldPath": f"metadata.labels['{key}']"}
    template = {
        "metadata": {
            "name": f"train-{index}-{index * 7919 % 99991:05x}",
            "generateName": f"train-{index}-",
            "namespace": "ml",
            "uid": f"00000000-0000-0000-0000-{index:012d}",
            "labels": {key: str(index), "job-name": "train", "batch.kubernetes.io/controller-uid": "u"},
            "annotations": {key: str(index)},
            "ownerReferences": [{"kind": "Job", "name": "train", "uid": "u", "controller": True}],
        },
        "spec": {
            "hostname": f"train-{index}",
            "subdomain": "train",
            "containers": [
                {
                    "name": "main",
                    "image": "train:1",
                    "env": [{"name": "JOB_COMPLETION_INDEX", "valueFrom": {"fieldRef": field}}],
                    "resources": {"requests": {"cpu": "1", "memory": "1Gi"}},
                    "volumeMounts": [{"name": f"kube-api-access-{index:05x}", "mountPath": "/var/run/secrets"}],
                }
            ],
            "volumes": [{"name": f"kube-api-access-{index:05x}", "projected": {"sources": []}}],
        },
    }
    return decode_pod(msgspec.json.encode(template))


def of_a_daemonset(node: str) -> Pod:
    """As the DaemonSet controller makes them: pinned to their node by a field, tolerating what nodes go through."""
    tolerates = ["node.kubernetes.io/not-ready:NoExecute", "node.kubernetes.io/unschedulable:NoSchedule"]
    return a_pod(
        f"agent-{node}",
        namespace="kube-system",
        labels={"pod-template-generation": "1"},
        cpu="100m",
        requires=[f"metadata.name In {node}"],
        tolerates=tolerates,
    )


def test_an_indexed_job_of_a_thousand_pods_is_one_class() -> None:
    ledger, class_cache = a_ledger([a_node("n1")]), ClassCache(profile_plugins())
    for index in range(1000):
        class_cache.lookup(of_an_indexed_job(index), ledger.nodes)
    assert (len(class_cache), class_cache.work.builds) == (1, 1)


def test_a_thousand_pods_of_a_daemonset_are_one_class_and_each_lands_on_its_own_node() -> None:
    nodes = [a_node(f"n{i}", cordoned=i % 7 == 0) for i in range(1000)]
    done = run(nodes, [of_a_daemonset(node.metadata.name) for node in nodes])
    assert (len(done.planner.class_cache), done.planner.class_cache.work.builds) == (1, 1)
    assert done.placements == {f"kube-system/agent-n{i}": f"n{i}" for i in range(1000)}


def test_pods_of_a_daemonset_with_a_selector_of_its_own_are_one_class_too() -> None:
    nodes = [a_node(f"n{i}", labels={"os": "linux" if i else "windows"}) for i in range(4)]
    pods = [a_pod(f"a{i}", requires=[f"metadata.name In n{i} and os In linux"]) for i in range(4)]
    done = run(nodes, pods)
    assert len(done.planner.class_cache) == 1
    assert done.placements == {"a1": "n1", "a2": "n2", "a3": "n3"}
    assert done.refusals == {
        "a0": "0/4 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, "
        "3 node(s) didn't satisfy plugin(s) [NodeAffinity]."
    }


def test_pods_of_one_deployment_are_one_class_whatever_their_names() -> None:
    def replica(i: int) -> Pod:
        return a_pod(f"web-7d9f-{i:05x}", labels={"app": "web", "pod-template-hash": "7d9f"}, cpu=1, uid=str(i))

    assert len({SIGN(replica(i)) for i in range(100)}) == 1


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"uid": "another"}, id="its UID"),
        pytest.param({"name": "another"}, id="its name"),
        pytest.param({"labels": {"a": "b"}}, id="a label that nobody selects by"),
        pytest.param({"annotations": {"a": "b"}}, id="an annotation"),
        pytest.param({"nominated": "n1"}, id="the node it waits for"),
        pytest.param({"gates": ["g"]}, id="a gate: it is asked before the class is"),
    ],
)
def test_a_pod_stays_in_its_class_when_this_changes(change: dict[str, Any]) -> None:
    assert SIGN(a_pod(**{"name": "p", **change})) == SIGN(a_pod("p"))


RESIZED = ContainerStatus(name="main", allocated_resources={"cpu": 2})


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"node": "n1"}, id="spec.nodeName"),
        pytest.param({"cpu": 1}, id="requests"),
        pytest.param({"cpu": 0}, id="requests: an explicit 0 is not nothing"),
        pytest.param({"memory": "1Gi"}, id="requests of memory"),
        pytest.param({"requests": {"example.com/gpu": 1}}, id="requests of an extended resource"),
        pytest.param({"image": "other:1"}, id="image"),
        pytest.param({"ports": [80]}, id="hostPort"),
        pytest.param({"containers": [a_container(ports=[ContainerPort(host_port=0)])]}, id="ports"),
        pytest.param({"containers": [a_container(), a_container("second")]}, id="another container"),
        pytest.param({"init": [a_container("i", cpu=1)]}, id="initContainers"),
        pytest.param({"sidecars": [a_container("s", cpu=1)]}, id="sidecars"),
        pytest.param(
            {"containers": [a_container(restart_policy_rules=[RestartRule(action="RestartAllContainers")])]},
            id="restartPolicyRules",
        ),
        pytest.param(
            {"containers": [a_container(volume_mounts=[VolumeMount(bind_mount_options=["noexec"])])]},
            id="bindMountOptions",
        ),
        pytest.param(
            {"ephemeral_containers": [Container(volume_mounts=[VolumeMount(bind_mount_options=["noexec"])])]},
            id="ephemeralContainers",
        ),
        pytest.param({"overhead": {"cpu": "50m"}}, id="overhead"),
        pytest.param({"pod_level": {"cpu": 1}}, id="spec.resources"),
        pytest.param({"selects": {"disk": "ssd"}}, id="nodeSelector"),
        pytest.param({"requires": ["disk In ssd"]}, id="required node affinity"),
        pytest.param({"prefers": {"disk In ssd": 1}}, id="preferred node affinity"),
        pytest.param({"tolerates": ["gpu"]}, id="tolerations"),
        pytest.param({"image_volumes": ["db:1"]}, id="image volumes"),
        pytest.param({"host_network": True}, id="hostNetwork"),
        pytest.param({"host_network": True, "host_users": False}, id="hostUsers"),
        pytest.param({"status": {"container_statuses": [RESIZED]}}, id="a resize in place"),
        pytest.param({"status": {"allocated_resources": {"cpu": 2}}}, id="a resize of the pod as a whole"),
    ],
)
def test_a_pod_is_of_another_class_when_this_changes(change: dict[str, Any]) -> None:
    assert SIGN(a_pod(**{"name": "p", **change})) != SIGN(a_pod("p"))


@pytest.mark.parametrize(
    "terms",
    [
        pytest.param(["metadata.name In n1", "metadata.name In n2"], id="two alternatives with different names"),
        pytest.param(["metadata.name NotIn n1"], id="a name to keep away from"),
        pytest.param(["metadata.name In n1", "disk In ssd"], id="a name or something else"),
        pytest.param(["metadata.name In n1 n2"], id="a list of names, which cannot be parsed"),
        pytest.param(["metadata.name In n1 and metadata.name In n1"], id="the same name twice"),
        pytest.param(["metadata.name In n1 and disk In ssd", "metadata.name In n1"], id="with and without a label"),
    ],
)
def test_names_that_are_not_lifted_out_of_the_class_mean_what_they_meant(terms: list[str]) -> None:
    """Whether or not the class keeps the names, the pod may use the same nodes."""
    nodes = [a_node("n1", labels={"disk": "ssd"}), a_node("n2"), a_node("n3", labels={"disk": "ssd"})]
    ledger, rules = a_ledger(nodes), profile_plugins()
    pod = a_pod("p", requires=terms)
    classified = ClassCache(rules).lookup(pod, ledger.nodes)
    allowed = {
        node.metadata.name
        for node in nodes
        if classified.table.feasible[ledger.nodes.row_of[node.metadata.name]]
        and (classified.node_names is None or node.metadata.name in classified.node_names)
        and classified.rejection is None
    }
    assert allowed == {node.metadata.name for node in nodes if _matches(pod, node.metadata.name, node.metadata.labels)}


def _matches(pod: Pod, name: str, labels: dict[str, str]) -> bool:
    assert pod.spec.affinity is not None
    assert pod.spec.affinity.node_affinity is not None
    assert pod.spec.affinity.node_affinity.required is not None

    def holds(wanted: NodeSelectorRequirement, value: str | None) -> bool:
        return (value in wanted.values) == (wanted.operator == "In")

    def matches(term: NodeSelectorTerm) -> bool:
        return all(holds(e, labels.get(e.key)) for e in term.match_expressions) and all(
            len(f.values) == 1 and holds(f, name) for f in term.match_fields
        )

    return any(matches(term) for term in pod.spec.affinity.node_affinity.required.node_selector_terms)


@pytest.mark.parametrize(
    "status",
    [
        pytest.param({"container_statuses": [RESIZED]}, id="what the kubelet allocated"),
        pytest.param({"init_container_statuses": [RESIZED]}, id="of an init container"),
        pytest.param(
            {"allocated_resources": {"cpu": 3}, "resources": ResourceRequirements(requests={"cpu": 3})},
            id="of the pod as a whole",
        ),
        pytest.param(
            {"conditions": [PodCondition(type="PodResizePending", reason="Infeasible")]}, id="what cannot be done"
        ),
    ],
)
def test_a_class_takes_from_a_node_what_its_pods_take(status: dict[str, Any]) -> None:
    """Else the pod's own words, when it is bound, change what was counted for it."""
    pod = a_pod("p", cpu=1, status=status)
    done = run([a_node("n1")], [pod])
    assert done.decisions["p"].placements[0].footprint == footprint_of(pod)


def test_a_label_that_a_running_pod_asks_about_divides_the_class() -> None:
    ledger, class_cache = a_ledger([a_node("n1")]), ClassCache(profile_plugins())
    one, other = (a_pod("p", labels={"tier": value}) for value in "ab")
    assert class_cache.signature(one, ledger.nodes) == class_cache.signature(other, ledger.nodes)
    ledger.upsert_pod(a_pod("q", node="n1", apart=[f"tier=a per {HOSTNAME}"]))
    assert class_cache.signature(one, ledger.nodes) != class_cache.signature(other, ledger.nodes)


@pytest.mark.parametrize("operator", ["In", "Sideways"], ids=["that can be read", "that cannot"])
def test_a_label_that_its_own_terms_ask_about_divides_the_class(operator: str) -> None:
    ledger, class_cache = a_ledger([a_node("n1")]), ClassCache(profile_plugins())
    wanted = LabelSelectorRequirement(key="tier", operator=operator, values=["a"])
    term = PodAffinityTerm(topology_key=HOSTNAME, label_selector=LabelSelector(match_expressions=[wanted]))
    pods = [a_pod("p", labels={"tier": tier, "index": str(i)}, near=[term]) for i, tier in enumerate("aab")]
    one, like_it, other = (class_cache.signature(pod, ledger.nodes) for pod in pods)
    assert one == like_it != other


def test_amounts_beyond_any_machine_number_are_told_apart() -> None:
    assert SIGN(a_pod("p", cpu=10**30)) != SIGN(a_pod("p", cpu=10**30 + 1))


def test_the_cache_is_bounded_and_what_was_dropped_is_computed_again() -> None:
    nodes = [a_node(f"n{i}") for i in range(50)]
    ledger, class_cache = a_ledger(nodes), ClassCache(profile_plugins(), cache_bytes=50_000)

    def ask(i: int) -> int:
        return class_cache.lookup(a_pod("p", cpu=f"{i}m"), ledger.nodes).table.feasible_count

    assert {ask(i) for i in range(1, 400)} == {50}
    assert len(class_cache) < 64
    assert ask(1) == 50
