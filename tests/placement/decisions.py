"""Decides about pods of a list of API objects, one job after the other, without a server."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from kubenexus.api.core import Pod
from kubenexus.explain.cluster_dump import ClusterDump, read_dump
from kubenexus.explain.explanation import NodeRating, explain
from kubenexus.explain.gather_job import job_of_pod
from kubenexus.framework.profile import Profile
from kubenexus.plan.decide import Planner, commit
from kubenexus.plugins import profile_plugins, shipped_profile

Object = dict[str, Any]


class Placement(NamedTuple):
    """The result for one pod: its node or the sentence why it has none, and all feasible nodes, the best first.

    Members of a gang have no ratings.
    """

    node: str
    sentence: str = ""
    ratings: tuple[NodeRating, ...] = ()


def dump_of(objects: Iterable[Object]) -> ClusterDump:
    """Returns the ledger of these objects. Raises AssertionError if one of them cannot be read."""
    dump = read_dump(json.dumps({"kind": "List", "items": list(objects)}).encode(), "the test")
    assert not dump.problems, dump.problems
    assert not dump.ignored, dump.ignored
    return dump


def without(plugin: str) -> Profile:
    """Returns the shipped profile with one plugin off."""
    shipped = shipped_profile()
    kept = tuple(each for each in shipped.plugins if each.name != plugin)
    assert len(kept) == len(shipped.plugins) - 1, f"{plugin} is not in the shipped profile"
    return msgspec.structs.replace(shipped, plugins=kept)


def decide_in_turn(objects: Iterable[Object], profile: Profile | None = None) -> dict[str, Placement]:
    """Returns by name where each waiting pod of the objects goes. Each decision sees those before it."""
    dump = dump_of(objects)
    planner = Planner(profile_plugins(profile or shipped_profile()))
    found: dict[str, Placement] = {}
    for pod in [each for each in dump.pods.values() if not each.spec.node_name]:
        if pod.metadata.name not in found:
            found |= _decided(pod, dump, planner, dump.pods)
    return found


def _decided(pod: Pod, dump: ClusterDump, planner: Planner, pods: Mapping[str, Pod]) -> dict[str, Placement]:
    ledger = dump.ledger
    explanation = explain(pod, pods, ledger, planner, 0.0, nodes=ledger.nodes.count)
    decision = explanation.decision
    if not decision.placed:
        return {pod.metadata.name: Placement("", decision.full_sentence())}
    commit(decision, job_of_pod(pod, pods, ledger.groups).job, ledger, 0.0)
    return {
        pods[each.pod].metadata.name: Placement(each.node, ratings=explanation.best) for each in decision.placements
    }
