"""Finds the nodes where kube-scheduler's dry run of preemption frees more than a victim holds. We do not follow it.

It would evict pods on such a node, and the preemptor would not fit afterwards (docs/differences.md). It frees

    a host port     that a pod which stays holds, too: its ports are a set
    a spread pod    that is terminating, and so was not counted before it is subtracted
    a claim         ReadWriteOncePod, that a pod of another node uses, too, or that only has the name of the victim's
"""

from collections.abc import Iterable
from typing import Final

from kubenexus.api.selectors import compile_selector
from kubenexus.state.pods import PodRecord
from kubenexus.state.volumes.pod_volumes import PodVolumes
from kubenexus.testing.oracle.our_answers import OurAnswers

FREES_TOO_MUCH: Final = "nodes where kube-scheduler's victims free what they do not hold (docs/differences.md)"


def frees_too_much(node: str, ours: OurAnswers) -> bool:
    """Returns whether a potential victim on the node frees too much, by the rules above."""
    priority = ours.pod.spec.priority
    there = ours.ledger.on_node(node)
    leaving = [pod for pod in there if pod.priority < priority]
    staying = [pod for pod in there if pod.priority >= priority]
    return _port(ours, leaving, staying) or _spread(ours, leaving) or _claim(ours, leaving)


def _port(ours: OurAnswers, leaving: Iterable[PodRecord], staying: Iterable[PodRecord]) -> bool:
    wanted = {(port.protocol, port.number) for port in ours.classified.table.pod.ports}
    held = {port for pod in staying for port in pod.footprint.ports if (port.protocol, port.number) in wanted}
    return any(not held.isdisjoint(pod.footprint.ports) for pod in leaving)


def _spread(ours: OurAnswers, leaving: Iterable[PodRecord]) -> bool:
    own, namespace = ours.pod.spec.topology_spread_constraints, ours.pod.metadata.namespace
    selectors = [compile_selector(each.label_selector) for each in own if each.when_unsatisfiable == "DoNotSchedule"]
    gone = [pod for pod in leaving if pod.terminating and pod.namespace == namespace]
    return any(selector.matches(pod.labels) for selector in selectors for pod in gone)


def _claim(ours: OurAnswers, leaving: list[PodRecord]) -> bool:
    namespace, claims = ours.pod.metadata.namespace, ours.columns.volumes.claims
    mounts = ours.columns.volumes.mounts(ours.pod)
    for name in _names(mounts):
        claim = claims.get(f"{namespace}/{name}")
        if claim is None or not claim.exclusive or not any(name in _names(pod.mounts) for pod in leaving):
            continue
        users = [pod for pod in ours.ledger.pods.values() if pod.namespace == namespace and name in _names(pod.mounts)]
        foreign = any(name in _names(pod.mounts) for pod in leaving if pod.namespace != namespace)
        if foreign or any(pod not in leaving for pod in users):
            return True
    return False


def _names(mounts: PodVolumes | None) -> set[str]:
    """Returns the names of claims, without those of ephemeral volumes."""
    return set() if mounts is None else {use.claim for use in mounts.claims if not use.ephemeral}
