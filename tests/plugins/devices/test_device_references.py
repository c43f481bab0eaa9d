"""The rules about devices say of each node what their references say: over all rows, some rows, and one row."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kubenexus.api.core import Pod
from kubenexus.cycle.class_cache import ClassCache
from kubenexus.framework.pod_class import PodClass
from kubenexus.framework.verdict import Verdict
from kubenexus.plugins import BUILT_IN, profile_plugins, shipped_profile
from kubenexus.state.ledger import Ledger
from kubenexus.state.view import Nodes
from kubenexus.testing.builders import a_pod
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
