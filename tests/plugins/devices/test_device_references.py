"""The rules about devices say of each node what their references say: over all rows, some rows, and one row."""

from typing import Any, cast

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kubenexus.api.core import Pod
from kubenexus.api.devices.device import Device, Link, NodeDevices
from kubenexus.api.devices.device_share import DeviceShare, devices_annotation
from kubenexus.api.keys import gpu
from kubenexus.cycle.class_cache import ClassCache
from kubenexus.framework.job import SINGLE_POD_VIEW
from kubenexus.framework.pod_class import PodClass
from kubenexus.framework.verdict import NodeVerdict, ReasonTable, Verdict
from kubenexus.plugins import BUILT_IN, profile_plugins, shipped_profile
from kubenexus.state.ledger import Ledger
from kubenexus.state.view import Nodes, OneNode
from kubenexus.testing.builders import a_node, a_pod
from kubenexus.testing.harness import CheckedCluster
from kubenexus.testing.reference_check import ACCEPTED, assert_matches_reference, plugin_answers
from tests.plugins.devices import device_machine, device_reference
from tests.plugins.devices.device_cluster import device_clusters, device_pods

RULES: dict[str, Any] = {
    "DeviceFit": device_reference.DeviceFit(),
    "VRAMScheduler": device_reference.VRAMScheduler(),
    "GPUTopology": device_reference.GPUTopology(),
    "ResourceFragmentationScore": device_reference.ResourceFragmentationScore(),
}
PLUGINS = profile_plugins(shipped_profile())
MOST = 10
COMMON = (
    a_pod("one", gpu=1),
    a_pod("two", gpu=2),
    a_pod("joined", gpu=2, annotations={gpu.PREFER_NVLINK.key: "required"}),
    a_pod("three", gpu=3),
    a_pod("four", gpu=4),
    a_pod("half", annotations={gpu.FRACTION.key: "0.5"}),
)
CARD: dict[str, Any] = {"vendor": "nvidia", "resource": "nvidia.com/gpu", "memory": 80 << 30, "link": Link.NVLINK}
HALF = DeviceShare("gpu-0", 500, 30 << 30)
# By node: its labels, what its cards have besides CARD, and the pods on it: a number of GPUs, and cards by name.
STATES: dict[str, tuple[dict[str, str], dict[str, Any], list[tuple[int, tuple[DeviceShare, ...]]]]] = {
    "free": ({}, {}, []),
    "one of an island": ({}, {}, [(1, (DeviceShare("gpu-0"),))]),
    "one of each island": ({}, {}, [(2, (DeviceShare("gpu-0"), DeviceShare("gpu-4")))]),
    "two of an island": ({}, {}, [(2, (DeviceShare("gpu-0"), DeviceShare("gpu-1")))]),
    "without a name": ({}, {}, [(1, ())]),
    "seven without names": ({}, {}, [(7, ())]),
    "not pristine": ({gpu.PRISTINE.key: "false"}, {}, []),
    "broken": ({}, {"healthy": False}, []),
    "not joined": ({}, {"link": Link.PCIE}, []),
    "one island": ({}, {"island": 0}, []),
    "one fast island": ({}, {"island": 0, "link": Link.NVSWITCH}, []),
    "replicas": ({}, {"replicas": 4}, []),
    "replicas in use": ({}, {"replicas": 4}, [(1, (DeviceShare("gpu-0", 250),)), (1, (DeviceShare("gpu-1", 250),))]),
    "shared": ({}, {}, []),
    "shared, half": ({}, {}, [(0, (HALF,))]),
    "shared, half of another": ({}, {}, [(0, (DeviceShare("gpu-1", 500, 30 << 30),))]),
    "shared, half without memory": ({}, {}, [(0, (DeviceShare("gpu-0", 500),))]),
    "shared, a little": ({}, {}, [(0, (DeviceShare("gpu-0", 100, 1 << 30),))]),
    "shared, much memory": ({}, {}, [(0, (DeviceShare("gpu-0", 500, 60 << 30),))]),
    "shared, small cards": ({}, {"memory": 16 << 30}, []),
    "shared, without a name": ({}, {}, [(7, ())]),
}


def signed_class(pod: Pod, ledger: Ledger) -> PodClass:
    """The pod's class as the whole profile signs it."""
    return ClassCache(PLUGINS).lookup(pod, ledger.nodes).table.pod


@settings(max_examples=4 * settings().max_examples)
@given(cluster=device_clusters(), pod=device_pods() | st.just(a_pod(cpu=1)))
def test_each_rule_says_of_each_node_what_its_reference_says(cluster: CheckedCluster, pod: Pod) -> None:
    pod_class = signed_class(pod, cluster.ledger)
    for name, rule in RULES.items():
        if name in pod_class.signed:  # else the profile does not call it
            assert_matches_reference(BUILT_IN[name]({}), rule, pod, cluster, pod_class)


@given(cluster=device_clusters(alike=True))
def test_the_combined_rule_returns_what_the_plugins_return_one_by_one(cluster: CheckedCluster) -> None:
    check_combined_rule(cluster.ledger)


def test_the_combined_rule_distinguishes_all_states_that_plugins_distinguish() -> None:
    """The rule keeps results by the state of a row. Each node differs from others in one respect."""
    ledger = Ledger()
    for name, (labels, fields, held) in STATES.items():
        replicas = fields.get("replicas", 1)
        cards = [Device(name=f"gpu-{i}", **{**CARD, "island": i // 4, **fields}) for i in range(8)]
        ledger.upsert_node(a_node(name, cpu=64, gpu=8 * replicas, labels=labels))
        ledger.set_devices(name, NodeDevices(tuple(cards), "shared" in name))
        for i, (number, takes) in enumerate(held):
            annotations = {gpu.DEVICES.key: devices_annotation(takes)} if takes else {}
            annotations |= {} if number else {gpu.FRACTION.key: "0.5"}
            ledger.upsert_pod(a_pod(f"{name}-{i}", gpu=number or None, annotations=annotations, node=name))
    check_combined_rule(ledger)


def check_combined_rule(ledger: Ledger) -> None:
    columns, plugins = ledger.nodes, profile_plugins(shipped_profile())
    rule = next(each.rule for each in plugins.combined if each.rule.names[-1] == "DeviceFit")
    for pod in COMMON:
        pod_class = signed_class(pod, ledger)
        assert rule.concerns(pod_class)
        for row in range(columns.size):
            found = rule.row(pod_class, OneNode(columns, row))
            assert found == one_by_one(pod_class, OneNode(columns, row)), (pod.key, columns.names[row])


def one_by_one(pod_class: PodClass, node: OneNode) -> Any:
    """The reasons against a row by plugin, and without any the scores."""
    refusals = {}
    for name in ("DeviceFit", "GPUTopology"):
        verdict, plugin = NodeVerdict(ReasonTable()), cast("Any", BUILT_IN[name]({}))
        plugin.filter(pod_class, node, verdict)
        if verdict.row_bits:
            refusals[name] = verdict.table.read(verdict.row_bits)
    scoring: list[Any] = [BUILT_IN[name]({}) for name in ("ResourceFragmentationScore", "GPUTopology")]
    return refusals or (*[plugin.score(pod_class, node, SINGLE_POD_VIEW) for plugin in scoring], 0)


@settings(max_examples=2 * settings().max_examples)
@given(cluster=device_clusters(nodes=2), pod=device_pods())
def test_members_that_were_counted_are_accepted_one_by_one_and_get_their_devices(
    cluster: CheckedCluster, pod: Pod
) -> None:
    ledger, pod_class = cluster.ledger, signed_class(pod, cluster.ledger)
    rules: list[Any] = [BUILT_IN["NodeResourcesFit"]({})] + [
        BUILT_IN[name]({}) for name in RULES if name in pod_class.signed
    ]
    capacity = np.full(ledger.nodes.size, MOST, np.int64)
    for rule in rules:
        rule.capacity(pod_class, Nodes(ledger.nodes), capacity)
    for name, row in ledger.nodes.row_of.items():
        refused = [plugin_answers(rule, pod, ledger, None, pod_class).refusals[name] for rule in rules]
        if all(refusal == ACCEPTED for refusal in refused):
            placed = in_turn(rules, pod, pod_class, name, ledger)
            assert capacity[row] <= placed, (name, rules)
            if is_plain(pod, name, cluster):
                assert capacity[row] == placed, (name, rules)


def is_plain(pod: Pod, node: str, cluster: CheckedCluster) -> bool:
    """Whether the count is exact: nothing is held without names, and no card is taken in parts, sliced or in a mesh."""
    machine = device_machine.Machine(cluster.reference.infos()[node])
    requests = device_machine.requests_of(pod)
    meshed = any(device.peers for device in machine.devices)
    odd = any(machine.unnamed_cards(request) for request in requests) or machine.sliced or meshed
    return not odd and len(requests) == 1 and not (requests[0].is_part and requests[0].number > 1)


def in_turn(rules: list[Any], pod: Pod, pod_class: PodClass, node: str, ledger: Ledger) -> int:
    """How many copies of the pod the node takes, each with its devices, before it is refused; `MOST` at most."""
    row, placed = ledger.nodes.row_of[node], 0
    fit: Any = BUILT_IN["DeviceFit"]({})
    with ledger.transaction() as transaction:
        while placed < MOST:
            one = Nodes(ledger.nodes, np.array([row]))
            if any(plugin_answers(rule, pod, ledger, one, pod_class).refusals[node] != ACCEPTED for rule in rules):
                break
            assigned = fit.assign(pod_class, row, Nodes(ledger.nodes))
            if isinstance(assigned, Verdict):
                break
            transaction.place(pod, node, pod_class.footprint, assigned.device_shares)
            placed += 1
    return placed
