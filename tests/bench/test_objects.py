"""The clusters of the benches are what they are said to be."""

import pytest

from bench import objects
from bench.cluster import CROWDED, PLAIN, BenchError, Cluster, mixture, never_seen, placed, small_classes
from bench.decisions import DRAIN, Rounds
from bench.objects import ZONES, Template
from kubenexus.api.codec import decode_pod
from kubenexus.framework.job import Job
from kubenexus.framework.pod_signature import PodSigner
from kubenexus.plugins import profile_plugins


def signatures(templates: list[Template]) -> set[bytes]:
    signer = PodSigner(profile_plugins().reads)
    return {signer.sign(decode_pod(objects.pod(template, i).encode())) for i, template in enumerate(templates)}


@pytest.mark.parametrize(
    ("templates", "classes"),
    [
        pytest.param([Template()] * 100, 1, id="pods of one workload are one class"),
        pytest.param(mixture(100), 100, id="the mixture has a hundred"),
        pytest.param(mixture(100, zones=True), 100, id="the mixture with affinity too"),
        pytest.param(small_classes(), 100, id="and those that run already"),
        pytest.param([t for t, _ in zip(never_seen(), range(5_000), strict=False)], 5_000, id="new classes are new"),
    ],
)
def test_classes_are_as_many_as_a_bench_says(templates: list[Template], classes: int) -> None:
    assert len(signatures(templates)) == classes


@pytest.mark.parametrize("node", ["", "worker-00001"])
@pytest.mark.parametrize("zones", [(), ZONES[:2]])
def test_a_pod_is_as_long_as_real_ones_are(node: str, zones: tuple[str, ...]) -> None:
    text = objects.pod(Template(zones=zones), 12_345, node)
    assert 2_500 < len(text) < 6_000
    assert "@" not in text.replace("@sha256", "")


def test_a_crowded_cluster_is_crowded() -> None:
    ledger = Cluster(CROWDED, 200).ledger
    assert len(ledger.pods) == 30 * 200
    assert ledger.nodes.cordoned_count == 10
    assert all(len(ledger.nodes.images.of_row(row)) == 2 * 20 for row in range(200))
    assert sum(ledger.nodes.taints.sets[code] != () for code in ledger.nodes.taints.codes[:200].tolist()) == 30


def test_what_a_bench_placed_is_taken_back() -> None:
    cluster = Cluster(PLAIN, 50)
    before = (set(cluster.ledger.pods), cluster.ledger.nodes.resources.used.tobytes())
    for templates in ([Template()], mixture(100)):
        rounds = Rounds(cluster, templates, 100)
        for _ in range(5):
            rounds.decide()
            rounds.place()
            assert 0 < len(cluster.placed) < DRAIN + 200
        assert len(rounds.planner.class_cache) == len(templates)
        cluster.drain()
        assert (set(cluster.ledger.pods), cluster.ledger.nodes.resources.used.tobytes()) == before


def test_a_bench_refuses_to_measure_refusals() -> None:
    cluster = Cluster(PLAIN, 3)
    huge = cluster.pods([Template(cpu=100_000)])[0]
    decision = cluster.planner().decide(Job.of(huge), cluster.ledger.snapshot(), 0.0)
    with pytest.raises(BenchError, match="0/3 nodes are available: 3 Insufficient cpu"):
        placed(decision)
