"""Reserved capacity counts in a file, as its status says."""

import json
from typing import Any

from kubenexus.explain.cluster_dump import ClusterDump, read_dump
from kubenexus.framework.job import Job
from kubenexus.plan.decide import Planner
from kubenexus.plugins import profile_plugins
from kubenexus.testing.builders import a_pod

KIND = {"apiVersion": "scheduling.kubenexus.io/v1alpha1", "kind": "ResourceReservation"}
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n"},
    "status": {"allocatable": {"cpu": "4", "pods": "9"}},
}


def dump(spec: dict[str, Any], **labels: str) -> ClusterDump:
    metadata = {"namespace": "team-a", "name": "r", "generation": 2, "labels": labels}
    status = {"phase": "Active", "observedGeneration": 2, "nodes": {"r-member-0": "n"}}
    items = [KIND | {"metadata": metadata, "spec": spec, "status": status}, NODE]
    return read_dump(json.dumps({"kind": "List", "items": items}).encode(), "file")


def fits(found: ClusterDump, namespace: str) -> bool:
    job = Job.of(a_pod(namespace=namespace, cpu=1))
    return Planner(profile_plugins()).decide(job, found.ledger.snapshot(), 0.0).placed


def test_it_counts_for_all_but_its_owner() -> None:
    found = dump({"count": 1, "resources": {"cpu": "4"}})
    assert (fits(found, "default"), fits(found, "team-a")) == (False, True)


def test_a_report_about_a_gang_counts_for_nothing() -> None:
    labels = {"app.kubernetes.io/managed-by": "kubenexus-scheduler", "pod-group": "llama"}
    assert fits(dump({"count": 1, "resources": {"cpu": "4"}}, **labels), "default")


def test_one_that_cannot_be_used_is_a_problem_of_the_file() -> None:
    assert dump({"count": -1, "resources": {"cpu": 1}}).problems == [
        "ResourceReservation team-a/r: spec.count: must be from 1 to 128, not -1"
    ]
