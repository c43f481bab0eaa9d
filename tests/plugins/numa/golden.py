"""The golden vectors of NUMATopology: what the first KubeNexus, written in Go, answers, and ours.

Each row is reproduced, or a deliberate change with the id of the bug that it mends. `make docs` writes the table to
docs/numa-golden.md (`golden_page`).
"""

from collections.abc import Mapping
from functools import partial

from kubenexus.api.numa.labelled_node import labelled_topology
from kubenexus.plan.decide import Planner
from kubenexus.plugins import profile_plugins
from kubenexus.plugins.numa.points import bandwidth_points, distance_points, node_points
from kubenexus.plugins.numa.request import NumaRequest, Wanted, is_intensive, stated_request
from kubenexus.testing.builders import a_node, a_pod
from kubenexus.testing.harness import Run, a_ledger
from tests.api.numa.builders import GPU, Row, a_numa_pod, an_nrt, guaranteed
from tests.golden_vectors import Vector
from tests.plugins.numa.numa_cluster import GI, PROFILE, a_run

OLD_KEY, NEW_KEY = "scheduling.kubenexus.io/numa-policy", "numa.scheduling.kubenexus.io/policy"
AFFINITY = "scheduling.kubenexus.io/numa-affinity-node-id"
AVOIDED = "scheduling.kubenexus.io/numa-anti-affinity-node-id"
WHOLE: Row = (16, 16, 16)
MEMORY: Row = (64 * GI, 64 * GI, 64 * GI)
HALF: Row = (16, 16, 8)
NOTHING: Mapping[str, str] = {}
GANG = "pod-group.scheduling.kubenexus.io/name"


def policy(key: str, value: str, kind: str = "service") -> str:
    """The policy of a pod with this annotation."""
    pod = a_pod("p", annotations={key: value} if key else {}, labels={"workload.kubenexus.io/type": kind})
    found = stated_request(pod)
    return found.policy


def intensive(cores: int, gib: int, stated: bool | None = None) -> str:
    request = NumaRequest(intensive=stated)
    return "yes" if is_intensive(request, Wanted(cores, gib * GI, ())) else "no"


def score(
    cpu: str,
    memory: str,
    gpu: int = 0,
    cpus: Row = WHOLE,
    annotations: Mapping[str, str] = NOTHING,
    labels: Mapping[str, str] = NOTHING,
) -> str:
    """The score of a node with two NUMA nodes of 16 CPUs and 64 GiB, 10 apart."""
    zone: dict[str, Row] = {"cpu": cpus, "memory": MEMORY} | ({GPU: (4, 4, 4)} if gpu else {})
    nrt = an_nrt([zone, zone], "best-effort", near=20)
    pod = a_numa_pod(
        guaranteed("main", cpu, memory, gpu), name="p", annotations={NEW_KEY: "best-effort", **annotations}
    )
    run = a_run(nrt, gpus=8, cpu=32, memory="128Gi", labels=dict(labels)).then([pod])
    (placement,) = run.decisions["p"].placements
    return str(next(each.raw for each in placement.scores if each.plugin == "NUMATopology"))


def filtered(
    cpu: str, said: str = "single-numa-node", free: Row = WHOLE, annotations: Mapping[str, str] = NOTHING
) -> str:
    nrt = an_nrt([{"cpu": free}, {"cpu": free}], "none")
    pod = a_numa_pod(guaranteed("main", cpu), name="p", annotations={OLD_KEY: said, **annotations})
    return "passes" if a_run(nrt, cpu=32).then([pod]).placements else "refused"


def labelled(kind: str, cpus: str = "node-0-cpus", text: str = "0-15", memory: str = "68719476736") -> str:
    """What the first NUMA node has by labels (or annotations) of its node: CPUs by this key, and memory."""
    texts = {cpus: text, "node-0-memory": memory, "node-count": "1"}
    keys = {f"numa.kubenexus.io/{key}": value for key, value in texts.items()}
    zones = labelled_topology(*((keys, {}) if kind == "label" else ({}, keys))).zones
    amounts = {each.name: int(each.available) for each in zones[0].resources} if zones else {}
    return f"{amounts['cpu']} CPUs, {amounts['memory'] // GI} GiB" if amounts else "unknown"


def gpus_left(key: str) -> str:
    """Whether two GPUs of one NUMA node are found on a node with two on each, of which a pod on each holds one."""
    labels = {f"gpu.kubenexus.io/{key.format(gpu)}": str(gpu // 2) for gpu in range(4)}
    labels |= {f"numa.kubenexus.io/node-{zone}-cpu-count": "8" for zone in (0, 1)}
    labels["numa.kubenexus.io/node-count"] = "2"
    ledger = a_ledger([a_node("n", cpu=16, memory="64Gi", resources={GPU: 4}, labels=labels)])
    ledger.read_devices()
    run = Run(ledger, Planner(profile_plugins(PROFILE)), {})
    for name, number in (("a", 2), ("b", 1)):
        run.then([a_numa_pod(guaranteed("main", "1", "1Gi", number), name=name, annotations={OLD_KEY: "best-effort"})])
    pod = a_numa_pod(guaranteed("main", "1", "1Gi", 2), name="p", annotations={OLD_KEY: "single-numa-node"})
    return "passes" if run.then([pod]).placements else "refused"


def beside_member(nodes: int, *, deleted: bool = False) -> str:
    """What NUMA node 0 counts as for a member that keeps off the others: a member is on NUMA node 0 of the first node.
    With two nodes, that of the second one."""
    run = a_run(*(an_nrt([{"cpu": WHOLE}, {"cpu": (16, 16, 0)}], name=f"n{number}") for number in range(nodes)), cpu=32)
    notes = {"scheduling.kubenexus.io/gang-numa-spread": "isolated"}
    labels = {GANG: "g", "pod-group.scheduling.kubenexus.io/min-available": "1"}
    first, second = (
        a_numa_pod(guaranteed("main", "2"), name=name, labels=labels, annotations=notes) for name in ("a", "b")
    )
    at = run.then([first]).placements["a"]
    if deleted:
        run.ledger.remove_pod(first.key)
    found = run.then([second]).placements.get("b")
    return "taken" if found is None or (nodes > 1 and found == at) else "free"


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
BANDWIDTH = {f"numa.kubenexus.io/node-{zone}-bandwidth": "102400" for zone in (0, 1)}
BANDWIDTH_VECTORS = (
    Vector("a pod of 16 GiB on 64 GiB", lambda: str(int(bandwidth_points(16 * GI, 64 * GI))), "75", "75"),
    Vector("a pod of 80 GiB on 64 GiB", lambda: str(int(bandwidth_points(80 * GI, 64 * GI))), "0", "0"),
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
    Vector("4 CPUs and 24 GiB, bandwidth not known", partial(score, "4", "24Gi"), "58", "73", "NUMA-5"),
    Vector("the same, with labels of bandwidth", partial(score, "4", "24Gi", labels=BANDWIDTH), "61", "76", "NUMA-5"),
    Vector("12 CPUs: two NUMA nodes are needed", partial(score, "12", "4Gi", 0, HALF), "25", "25"),
    Vector(
        "a NUMA node that fits and has 0 points",
        lambda: str(int(node_points(0))),
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
LABEL_VECTORS = (
    Vector("CPUs 0-15 in a label", partial(labelled, "label"), "16 CPUs, 64 GiB", "16 CPUs, 64 GiB"),
    Vector(
        "CPUs 0-15_32-47 in a label",
        partial(labelled, "label", text="0-15_32-47"),
        "unknown",
        "32 CPUs, 64 GiB",
        "NUMA-8",
    ),
    Vector(
        "CPUs 0-15,32-47 in an annotation",
        partial(labelled, "annotation", text="0-15,32-47"),
        "unknown",
        "32 CPUs, 64 GiB",
        "NUMA-8",
    ),
    Vector(
        "the number of CPUs alone",
        partial(labelled, "label", "node-0-cpu-count", "48"),
        "unknown",
        "48 CPUs, 64 GiB",
        "NUMA-8",
    ),
    Vector("memory 64Gi", partial(labelled, "label", memory="64Gi"), "unknown", "16 CPUs, 64 GiB", "NUMA-9"),
    Vector("two GPUs where one is in use", partial(gpus_left, "numa-node-{}"), "passes", "refused", "NUMA-10"),
    Vector("the same with the key of the guide", partial(gpus_left, "gpu{}-numa"), "passes", "refused", "NUMA-10"),
)
GANG_VECTORS = (
    Vector("NUMA node 0 of the same node has a member", partial(beside_member, 1), "taken", "taken"),
    Vector("NUMA node 0 of another node has a member", partial(beside_member, 2), "taken", "free", "NUMA-3"),
    Vector("the member was deleted", partial(beside_member, 1, deleted=True), "taken", "free", "NUMA-3"),
)
SECTIONS = {
    "The policy of a pod": POLICY_VECTORS,
    "Memory bandwidth matters": MEMORY_VECTORS,
    "Points of distance": DISTANCE_VECTORS,
    "Points of bandwidth, where it matters and is known": BANDWIDTH_VECTORS,
    "Score: two NUMA nodes of 16 CPUs and 64 GiB, distance 20": SCORE_VECTORS,
    "Filter: two NUMA nodes of 16 CPUs": FILTER_VECTORS,
    "NUMA nodes by labels and annotations": LABEL_VECTORS,
    "NUMA node 0 for a member of a gang with the spread isolated": GANG_VECTORS,
}
