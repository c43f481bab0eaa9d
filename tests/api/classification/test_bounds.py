"""A hostile pod costs no more than a large one: each loop over what a pod contains is bounded."""

import tracemalloc
from time import thread_time
from typing import Any

import pytest

from kubenexus.api.classification.workload import (
    MAX_CONTAINERS,
    MAX_RESOURCES,
    WorkloadType,
    classify,
)
from kubenexus.api.core import Container, Pod, ResourceRequirements
from kubenexus.api.meta import OwnerReference
from kubenexus.plugins.workload import signed
from kubenexus.testing.builders import GPU, a_pod
from tests.api.classification.builders import with_owners

JUPYTER = Container(name="j", image="jupyter/base-notebook")
PLAIN = Container(name="p", image="nginx")
MANY = 100_000


def test_containers_beyond_the_first_are_not_looked_at() -> None:
    head = [PLAIN] * (MAX_CONTAINERS - 1)
    assert classify(a_pod(containers=[*head, JUPYTER])).type is WorkloadType.INTERACTIVE
    assert classify(a_pod(containers=[*head, PLAIN, JUPYTER])).type is WorkloadType.SERVICE


def test_resources_beyond_the_first_are_not_looked_at() -> None:
    def asking(before: int) -> Pod:
        requests: Any = {f"example.com/r{i}": "1" for i in range(before)} | {GPU: "8"}
        containers = [Container(name="c", resources=ResourceRequirements(requests=requests))]
        return a_pod(containers=containers, labels={"spark-role": "executor"})

    assert classify(asking(MAX_RESOURCES - 1)).type is WorkloadType.TRAINING
    assert classify(asking(MAX_RESOURCES)).type is WorkloadType.BATCH


def hostile() -> dict[str, Pod]:
    texts = {f"example.com/k{i}": "v" for i in range(MANY)}
    owner = OwnerReference(kind="Deployment" * 100, api_version="x" * 10_000)
    return {
        "labels": a_pod(labels=texts, annotations=texts),
        "labels and a mark": a_pod(labels=texts | {"spark-role": "driver"}, annotations=texts),
        "owners": with_owners(a_pod(), [owner] * MANY),
        "containers": a_pod(containers=[Container(name="c", image="a-/" * 10_000)] * MANY),
        "a long name": a_pod(labels={"app.kubernetes.io/name": "lab" * 1_000_000}),
        "a long image": a_pod(image="code-" * 1_000_000),
        "a long gang": a_pod(annotations={"pod-group.scheduling.kubenexus.io/name": "g" * 200_000}),
    }


@pytest.mark.parametrize("what", hostile())
def test_a_hostile_pod_takes_under_two_milliseconds_and_leaves_nothing_behind(what: str) -> None:
    pod = hostile()[what]
    taken = []
    for _ in range(20):
        start = thread_time()
        classify(pod)
        taken.append(thread_time() - start)
    assert min(taken) < 0.002, "0.3 ms for the worst on a busy machine"
    tracemalloc.start()
    signed.workload_of(pod)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 20_000
