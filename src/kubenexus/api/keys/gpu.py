"""Keys of GPUs: on nodes (set by hand, by GPU or Node Feature Discovery), and the requests of pods."""

from kubenexus.api.keys.entry import KeyKind, Spelling, define_key, section
from kubenexus.api.keys.lists import IndexGroups, Price, Thousandths, line_rate, parameter_count
from kubenexus.api.keys.values import Bool, Int, OneOf, QuantityValue, Text

# NVLink, perhaps with a switch: used if nothing else is set, and no conflict with `nvswitch`.
_HAS_NVLINK = {"true": "nvlink", "false": ""}

VRAM_REQUEST = define_key(
    "scheduling.kubenexus.io/vram-request",
    on="Pod",
    values=QuantityValue("bytes", "80Gi"),
    default=None,
    meaning="The memory that the pod needs on each of its GPUs.",
    aliases=("scheduling.kubenexus.io/vram-per-gpu", "vram.scheduling.kubenexus.io/required"),
)

VRAM_REQUEST_TOTAL = define_key(
    "scheduling.kubenexus.io/vram-request-total",
    on="Pod",
    values=QuantityValue("bytes", "640Gi"),
    default=None,
    meaning="The memory that the pod needs on all its GPUs together.",
)

MODEL_SIZE = define_key(
    "scheduling.kubenexus.io/model-size",
    on="Pod",
    values=parameter_count("70B"),
    default=None,
    meaning="The size of the model that the pod loads: a hint where no GPU memory is asked for.",
    recognised_only=True,
)

TYPE = define_key(
    "gpu.kubenexus.io/type",
    on="Pod",
    values=Text("nvidia-a100"),
    default=None,
    meaning="Only GPUs of this type.",
)

PREFER_NVLINK = define_key(
    "gpu.kubenexus.io/prefer-nvlink",
    on="Pod",
    values=OneOf(("required", "preferred"), also={"true": "preferred"}),
    default=None,
    meaning="The pod's GPUs must, or should, be joined by NVLink.",
)

MIN_NVLINK_BANDWIDTH = define_key(
    "gpu.kubenexus.io/min-nvlink-bandwidth",
    on="Pod",
    values=line_rate("300GB/s"),
    default=None,
    kind=KeyKind.ANNOTATION,
    meaning="The least NVLink bandwidth between the pod's GPUs.",
)

FRACTION = define_key(
    "scheduling.kubenexus.io/gpu-fraction",
    on="Pod",
    values=Thousandths(),
    default=None,
    kind=KeyKind.ANNOTATION,
    meaning="The part of each of its GPUs that the pod takes, on a node that shares its GPUs. Of one GPU, if it asks "
    "for none by number.",
)

SHARE_MEMORY = define_key(
    "scheduling.kubenexus.io/gpu-memory",
    on="Pod",
    values=QuantityValue("bytes", "20Gi", least=1),
    default=None,
    kind=KeyKind.ANNOTATION,
    otherwise="the same part of the memory as of the GPU",
    meaning="The memory that the pod takes of each of its GPUs, on a node that shares its GPUs.",
)

DEVICES = define_key(
    "scheduling.kubenexus.io/devices",
    on="Pod",
    values=Text('[{"device":"gpu-3","share":500,"memory":"20Gi"}]'),
    default=None,
    kind=KeyKind.ANNOTATION,
    meaning="Written with the bind: the devices that the pod was given, `share` in thousandths. After a restart the "
    "scheduler reads from it which devices are taken.",
)

VISIBLE_DEVICES = define_key(
    "scheduling.kubenexus.io/visible-devices",
    on="Pod",
    values=Text("3"),
    default=None,
    kind=KeyKind.ANNOTATION,
    meaning="Written with the bind for a pod that shares a GPU: its UUID, or its number on the node, for "
    "`NVIDIA_VISIBLE_DEVICES`.",
)

SHARED = define_key(
    "gpu.kubenexus.io/shared",
    on="Node",
    values=Bool(),
    default=None,
    otherwise="true under time slicing and MPS",
    meaning="Pods may take parts of the node's GPUs.",
)

ISLANDS = define_key(
    "gpu.kubenexus.io/islands",
    on="Node",
    values=IndexGroups(),
    default=None,
    meaning="Which of the node's GPUs are joined by NVLink, where not all are.",
)

VRAM = define_key(
    "gpu.kubenexus.io/vram",
    on="Node",
    values=QuantityValue("bytes", "80Gi"),
    default=None,
    meaning="The memory of each GPU. Device attributes of DRA and discovered labels go before this.",
)

MODEL = define_key(
    "gpu.kubenexus.io/model",
    on="Node",
    values=Text("H100"),
    default=None,
    meaning="The model of the node's GPUs.",
    aliases=("hardware.kubenexus.io/gpu-model",),
)

COUNT = define_key(
    "gpu.kubenexus.io/count",
    on="Node",
    values=Int(most=4096, example="8"),
    default=1,
    meaning="How many GPUs the node has.",
)

TOPOLOGY = define_key(
    "gpu.kubenexus.io/topology",
    on="Node",
    values=OneOf(("nvswitch", "nvlink", "pcie")),
    default=None,
    otherwise="not known",
    meaning="What joins the node's GPUs.",
    aliases=(
        "topology.kubenexus.io/gpu",
        Spelling("nvidia.com/gpu.topology", KeyKind.LABEL),
        Spelling("nvidia.com/nvlink", KeyKind.LABEL, says=_HAS_NVLINK, hint=True),
        Spelling("topology.nvidia.com/nvlink", KeyKind.LABEL, says=_HAS_NVLINK, hint=True),
    ),
)

PRISTINE = define_key(
    "gpu.kubenexus.io/is-pristine",
    on="Node",
    values=Bool(),
    default=None,
    otherwise="worked out from what runs there",
    meaning="Whether no GPU of the node is in use. `false` is believed, `true` is checked.",
)

HEALTH = define_key(
    "gpu.kubenexus.io/health-<check>",
    on="Node",
    values=Text("ok"),
    default=None,
    meaning="The result of a health check of the node's GPUs.",
)

HARDWARE_TIER = define_key(
    "hardware.kubenexus.io/tier",
    on="Node",
    values=OneOf(
        ("premium", "standard", "economy"), also={"gold": "premium", "silver": "standard", "bronze": "economy"}
    ),
    default=None,
    kind=KeyKind.LABEL,
    otherwise="from the GPU model",
    meaning="How precious the node is; tenants are steered to the tier that matches theirs.",
    aliases=("hardware.kubenexus.io/gpu-tier",),
)

GENERATION = define_key(
    "hardware.kubenexus.io/gpu-gen",
    on="Node",
    values=Text("hopper"),
    default=None,
    meaning="The generation of the node's GPUs.",
    recognised_only=True,
)

COST_HOUR = define_key(
    "hardware.kubenexus.io/cost-hour",
    on="Node",
    values=Price(),
    default=None,
    kind=KeyKind.LABEL,
    meaning="What the node costs in an hour, for the cost report.",
)

CLASS = define_key(
    "gpu.nvidia.com/class",
    on="Node",
    values=Text("h100"),
    default=None,
    kind=KeyKind.LABEL,
    meaning="The class by which an autoscaler adds nodes. The admission webhook makes pods prefer the class of their "
    "tenant's tier.",
)

SECTION = section("GPUs and hardware", "What pods ask for, and what is written on nodes by hand.", globals())
