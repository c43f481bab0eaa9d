"""Keys of NUMA: a pod's demands on the memory and cores of one machine, and the layout of a node."""

from kubenexus.api.keys.entry import KeyKind, Spelling, define_key, section
from kubenexus.api.keys.lists import CpuList, Csv
from kubenexus.api.keys.values import Bool, Int, OneOf, Present, QuantityValue, Text

# Ids of NUMA nodes; the bound is far beyond any machine and keeps arrays by id small.
_ID = Int(most=1023, example="0")

POLICY = define_key(
    "numa.scheduling.kubenexus.io/policy",
    on="Pod",
    values=OneOf(
        ("best-effort", "restricted", "single-numa-node", "isolated", "none"),
        also={
            "preferred": "best-effort",
            "single-numa": "single-numa-node",
            "singlenumanode": "single-numa-node",
            "singlenumanodepodlevel": "single-numa-node",
            "singlenumanodecontainerlevel": "single-numa-node",
            "exclusive": "isolated",
            "disabled": "none",
        },
    ),
    default=None,
    otherwise="`single-numa-node` for batch and training, else `none`",
    meaning=(
        "Prefer one NUMA node; use the fewest that could do; exactly one; one that nobody else uses; do not care."
    ),
    aliases=("scheduling.kubenexus.io/numa-policy",),
)

RESOURCES = define_key(
    "numa.scheduling.kubenexus.io/resources",
    on="Pod",
    values=Csv(Text("cpu"), "cpu,memory,nvidia.com/gpu"),
    default=None,
    otherwise="cpu, memory and the GPUs asked for",
    kind=KeyKind.ANNOTATION,
    meaning="Which resources the policy binds together.",
)

AFFINITY = define_key(
    "scheduling.kubenexus.io/numa-affinity-node-id",
    on="Pod",
    values=Csv(_ID, "0,1"),
    default=(),
    kind=KeyKind.ANNOTATION,
    meaning="NUMA nodes to prefer. Ids that a node does not have are ignored.",
)

ANTI_AFFINITY = define_key(
    "scheduling.kubenexus.io/numa-anti-affinity-node-id",
    on="Pod",
    values=Csv(_ID, "2,3"),
    default=(),
    kind=KeyKind.ANNOTATION,
    meaning="NUMA nodes to avoid; under `single-numa-node` they are refused.",
)

MEMORY_INTENSIVE = define_key(
    "scheduling.kubenexus.io/memory-intensive",
    on="Pod",
    values=Bool(),
    default=None,
    otherwise="above 16 GiB and 4 GiB a core",
    meaning="Memory bandwidth matters to this pod.",
)

DISTANCE_WEIGHT = define_key(
    "scheduling.kubenexus.io/numa-distance-weight",
    on="Pod",
    values=Int(most=100, example="50"),
    default=50,
    meaning="How much the distance between NUMA nodes counts; 50 counts once, 100 twice.",
)

NODE_COUNT = define_key(
    "numa.kubenexus.io/node-count",
    on="Node",
    values=Int(least=1, most=1024, example="2"),
    default=None,
    meaning="How many NUMA nodes the machine has.",
    aliases=(
        "topology.kubenexus.io/numa-nodes",
        Spelling("feature.node.kubernetes.io/memory-numa.node_count", KeyKind.LABEL),
    ),
)

CPUS = define_key(
    "numa.kubenexus.io/node-<i>-cpus",
    on="Node",
    values=CpuList(),
    default=None,
    meaning="The CPUs of NUMA node i.",
)

CPU_COUNT = define_key(
    "numa.kubenexus.io/node-<i>-cpu-count",
    on="Node",
    values=Int(most=8192, example="32"),
    default=None,
    meaning="How many CPUs NUMA node i has, where their list is too long for a label.",
)

MEMORY = define_key(
    "numa.kubenexus.io/node-<i>-memory",
    on="Node",
    values=QuantityValue("bytes", "64Gi"),
    default=None,
    meaning="The memory of NUMA node i.",
)

BANDWIDTH = define_key(
    "numa.kubenexus.io/node-<i>-bandwidth",
    on="Node",
    values=Int(most=2**53, example="102400"),
    default=0,
    otherwise="0, not known",
    meaning=(
        "The memory bandwidth of NUMA node i in MB/s. Where it is known, pods to which bandwidth matters "
        "prefer NUMA nodes of whose memory they take a smaller part."
    ),
)

DISTANCE = define_key(
    "numa.kubenexus.io/node-<i>-distance-<j>",
    on="Node",
    values=Int(most=255, example="20"),
    default=None,
    meaning="The distance from NUMA node i to j as the firmware tells it: 10 is local.",
)

GPU = define_key(
    "gpu.kubenexus.io/numa-node-<g>",
    on="Node",
    values=_ID,
    default=None,
    meaning="The NUMA node that GPU g hangs on. Device attributes of DRA go before this.",
    aliases=("gpu.kubenexus.io/gpu<g>-numa",),
)

FULL_CORES = define_key(
    "numa.kubenexus.io/full-pcpus-only",
    on="Node",
    values=Bool(),
    default=False,
    kind=KeyKind.LABEL,
    meaning="The kubelet's CPU Manager has the option `full-pcpus-only`. No NodeResourceTopology tells it.",
)

SPREAD_CPUS = define_key(
    "numa.kubenexus.io/distribute-cpus-across-numa",
    on="Node",
    values=Bool(),
    default=False,
    kind=KeyKind.LABEL,
    meaning="The kubelet's CPU Manager has the option `distribute-cpus-across-numa`.",
)

PREFER_CLOSEST = define_key(
    "numa.kubenexus.io/prefer-closest-numa-nodes",
    on="Node",
    values=Bool(),
    default=False,
    kind=KeyKind.LABEL,
    meaning="The kubelet's Topology Manager has the option `prefer-closest-numa-nodes`.",
)

THREADS = define_key(
    "numa.kubenexus.io/threads-per-core",
    on="Node",
    values=Int(least=1, most=8, example="2"),
    default=0,
    otherwise="what Node Feature Discovery tells, else 2 unless the numbers of CPUs exclude it",
    kind=KeyKind.LABEL,
    meaning=(
        "How many CPUs a core has; with `full-pcpus-only` a pod gets whole cores. "
        "It also decides which CPUs init containers keep."
    ),
)

MULTITHREADING = define_key(
    "feature.node.kubernetes.io/cpu-hardware_multithreading",
    on="Node",
    values=Bool(),
    default=None,
    kind=KeyKind.LABEL,
    meaning="Node Feature Discovery: a core has two CPUs, or one.",
)

NFD = define_key(
    "feature.node.kubernetes.io/memory-numa",
    on="Node",
    values=Bool(),
    default=False,
    kind=KeyKind.LABEL,
    meaning="Node Feature Discovery saw more than one NUMA node.",
)

NFD_NODE = define_key(
    "feature.node.kubernetes.io/memory-numa.node<i>",
    on="Node",
    values=Present(),
    default=False,
    kind=KeyKind.LABEL,
    meaning="NUMA node i exists. Made by a NodeFeatureRule; Node Feature Discovery has no such label by itself.",
)

SECTION = section("NUMA", "Policies stand on pods, the layout of a machine on its node.", globals())
