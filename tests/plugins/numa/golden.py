"""The golden vectors of NUMATopology: what the first KubeNexus, written in Go, answers, and ours.

Each row is reproduced, or a deliberate change with the id of the bug that it mends. `make docs` writes the table to
docs/numa-golden.md (`golden_page`).
"""

from collections.abc import Mapping
from functools import partial

from kubenexus.plugins.numa.points import distance_points, node_points, zone_points
from kubenexus.plugins.numa.request import NumaRequest, Wanted, is_intensive, stated_request
from kubenexus.testing.builders import a_pod
from tests.api.numa.builders import GPU, Row, a_numa_pod, an_nrt, guaranteed
from tests.golden_vectors import Vector
from tests.plugins.numa.numa_cluster import GI, a_run

OLD_KEY, NEW_KEY = "scheduling.kubenexus.io/numa-policy", "numa.scheduling.kubenexus.io/policy"
AFFINITY = "scheduling.kubenexus.io/numa-affinity-node-id"
AVOIDED = "scheduling.kubenexus.io/numa-anti-affinity-node-id"
WHOLE: Row = (16, 16, 16)
MEMORY: Row = (64 * GI, 64 * GI, 64 * GI)
HALF: Row = (16, 16, 8)
NOTHING: Mapping[str, str] = {}


def policy(key: str, value: str, kind: str = "service") -> str:
    """The policy of a pod with this annotation."""
    pod = a_pod("p", annotations={key: value} if key else {}, labels={"workload.kubenexus.io/type": kind})
    found = stated_request(pod)
    return found.policy


def intensive(cores: int, gib: int, stated: bool | None = None) -> str:
    request = NumaRequest(intensive=stated)
    return "yes" if is_intensive(request, Wanted(cores, gib * GI, ())) else "no"


def score(cpu: str, memory: str, gpu: int = 0, cpus: Row = WHOLE, annotations: Mapping[str, str] = NOTHING) -> str:
    """The score of a node with two NUMA nodes of 16 CPUs and 64 GiB, 10 apart."""
    zone: dict[str, Row] = {"cpu": cpus, "memory": MEMORY} | ({GPU: (4, 4, 4)} if gpu else {})
    nrt = an_nrt([zone, zone], "best-effort", near=20)
    pod = a_numa_pod(
        guaranteed("main", cpu, memory, gpu), name="p", annotations={NEW_KEY: "best-effort", **annotations}
    )
    run = a_run(nrt, gpus=8, cpu=32, memory="128Gi").then([pod])
    (placement,) = run.decisions["p"].placements
    return str(next(each.raw for each in placement.scores if each.plugin == "NUMATopology"))


def filtered(
    cpu: str, said: str = "single-numa-node", free: Row = WHOLE, annotations: Mapping[str, str] = NOTHING
) -> str:
    nrt = an_nrt([{"cpu": free}, {"cpu": free}], "none")
    pod = a_numa_pod(guaranteed("main", cpu), name="p", annotations={OLD_KEY: said, **annotations})
    return "passes" if a_run(nrt, cpu=32).then([pod]).placements else "refused"


POLICY_VECTORS = (
    Vector(
        "annotation single-numa-node",
        partial(policy, OLD_KEY, "single-numa-node"),
        "single-numa-node",
        "single-numa-node",
    ),
    Vector("annotation best-effort", partial(policy, OLD_KEY, "best-effort"), "best-effort", "best-effort"),
    Vector("annotation none on a batch job", partial(policy, OLD_KEY, "none", "batch"), "none", "none"),
    Vector(
        "an unknown value on a batch job",
        partial(policy, OLD_KEY, "sideways", "batch"),
        "single-numa-node",
        "single-numa-node",
    ),
    Vector("no annotation, batch", partial(policy, "", "", "batch"), "single-numa-node", "single-numa-node"),
    Vector("no annotation, service", partial(policy, "", "", "service"), "none", "none"),
    Vector(
        "the key of the README, single-numa",
        partial(policy, NEW_KEY, "single-numa"),
        "none",
        "single-numa-node",
        "NUMA-1",
    ),
    Vector("the key of the README, restricted", partial(policy, NEW_KEY, "restricted"), "none", "restricted", "NUMA-1"),
    Vector("the key of the README, isolated", partial(policy, NEW_KEY, "isolated"), "none", "isolated", "NUMA-1"),
)
MEMORY_VECTORS = (
    Vector("4 cores, 20 GiB", partial(intensive, 4, 20), "yes", "yes"),
    Vector("8 cores, 20 GiB", partial(intensive, 8, 20), "no", "no"),
    Vector("4 cores, 8 GiB", partial(intensive, 4, 8), "no", "no"),
    Vector("2 cores, 8 GiB, annotation", partial(intensive, 2, 8, True), "yes", "yes"),
    Vector("4 cores, 18 GiB", partial(intensive, 4, 18), "no", "yes", "NUMA-6"),
)
DISTANCE_VECTORS = (
    Vector("20 to the other", lambda: str(int(distance_points(20, 50))), "50", "50"),
    Vector("30 to the other, weight 100", lambda: str(int(distance_points(30, 100))), "0", "0"),
)
SCORE_VECTORS = (
    Vector("8 CPUs and 32 GiB of 16 and 64", partial(score, "8", "32Gi"), "50", "79", "NUMA-5"),
    Vector(
        "the same, on a preferred NUMA node",
        partial(score, "8", "32Gi", annotations={AFFINITY: "0"}),
        "54",
        "79",
        "NUMA-5",
    ),
    Vector("the same, with a GPU that is free there", partial(score, "8", "32Gi", 1), "65", "90", "NUMA-5"),
    Vector("12 CPUs: two NUMA nodes are needed", partial(score, "12", "4Gi", 0, HALF), "25", "25"),
    Vector(
        "a NUMA node that fits and has 0 points",
        lambda: str(node_points(zone_points(0, 0, 0, 0))),
        "25",
        "30",
        "NUMA-4",
    ),
)
FILTER_VECTORS = (
    Vector("8 CPUs of 16", partial(filtered, "8"), "passes", "passes"),
    Vector("20 CPUs of 2 x 16", partial(filtered, "20"), "refused", "refused"),
    Vector("20 CPUs, best-effort", partial(filtered, "20", "best-effort"), "passes", "passes"),
    Vector(
        "12 CPUs where pods run that hold 8 of 16 each",
        partial(filtered, "12", free=HALF),
        "passes",
        "refused",
        "NUMA-2",
    ),
    Vector(
        "8 CPUs, both NUMA nodes to be avoided",
        partial(filtered, "8", annotations={AVOIDED: "0,1"}),
        "passes",
        "refused",
        "NUMA-7",
    ),
)
SECTIONS = {
    "The policy of a pod": POLICY_VECTORS,
    "Memory bandwidth matters": MEMORY_VECTORS,
    "Points of distance": DISTANCE_VECTORS,
    "Score: two NUMA nodes of 16 CPUs and 64 GiB, distance 20": SCORE_VECTORS,
    "Filter: two NUMA nodes of 16 CPUs": FILTER_VECTORS,
}
