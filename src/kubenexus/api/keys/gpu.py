"""GPUs: what nodes say of theirs (by hand, by GPU Feature Discovery, by Node Feature Discovery), what pods ask for."""

from kubenexus.api.keys.entry import Kind, Spelling, entry, section
from kubenexus.api.keys.lists import Price, line_rate, parameter_count
from kubenexus.api.keys.values import Amount, Bool, Int, OneOf, Text

# NVLink is there, perhaps with a switch: enough to go by when nothing else is said, no contradiction to `nvswitch`.
_HAS_NVLINK = {"true": "nvlink", "false": ""}

VRAM_REQUEST = entry(
    "scheduling.kubenexus.io/vram-request",
    on="Pod",
    values=Amount("bytes", "80Gi"),
    default=None,
    meaning="The memory that the pod needs on each of its GPUs.",
    aliases=("scheduling.kubenexus.io/vram-per-gpu", "vram.scheduling.kubenexus.io/required"),
)

VRAM_REQUEST_TOTAL = entry(
    "scheduling.kubenexus.io/vram-request-total",
    on="Pod",
    values=Amount("bytes", "640Gi"),
    default=None,
    meaning="The memory that the pod needs on all its GPUs together.",
)

MODEL_SIZE = entry(
    "scheduling.kubenexus.io/model-size",
    on="Pod",
    values=parameter_count("70B"),
    default=None,
    meaning="The size of the model that the pod loads: a hint where no GPU memory is asked for.",
)

TYPE = entry(
    "gpu.kubenexus.io/type",
    on="Pod",
    values=Text("nvidia-a100"),
    default=None,
    meaning="Only GPUs of this type.",
)

PREFER_NVLINK = entry(
    "gpu.kubenexus.io/prefer-nvlink",
    on="Pod",
    values=OneOf(("required", "preferred"), also={"true": "preferred"}),
    default=None,
    meaning="The pod's GPUs must, or should, be joined by NVLink.",
)

MIN_NVLINK_BANDWIDTH = entry(
    "gpu.kubenexus.io/min-nvlink-bandwidth",
    on="Pod",
    values=line_rate("300GB/s"),
    default=None,
    kind=Kind.ANNOTATION,
    meaning="The least NVLink bandwidth between the pod's GPUs.",
)

VRAM = entry(
    "gpu.kubenexus.io/vram",
    on="Node",
    values=Amount("bytes", "80Gi"),
    default=None,
    meaning="The memory of each GPU. Device attributes of DRA and discovered labels go before this.",
)

MODEL = entry(
    "gpu.kubenexus.io/model",
    on="Node",
    values=Text("H100"),
    default=None,
    meaning="The model of the node's GPUs.",
    aliases=("hardware.kubenexus.io/gpu-model",),
)

COUNT = entry(
    "gpu.kubenexus.io/count",
    on="Node",
    values=Int(most=4096, example="8"),
    default=1,
    meaning="How many GPUs the node has.",
)

TOPOLOGY = entry(
    "gpu.kubenexus.io/topology",
    on="Node",
    values=OneOf(("nvswitch", "nvlink", "pcie")),
    default=None,
    otherwise="not known",
    meaning="What joins the node's GPUs.",
    aliases=(
        "topology.kubenexus.io/gpu",
        Spelling("nvidia.com/gpu.topology", Kind.LABEL),
        Spelling("nvidia.com/nvlink", Kind.LABEL, says=_HAS_NVLINK, hint=True),
        Spelling("topology.nvidia.com/nvlink", Kind.LABEL, says=_HAS_NVLINK, hint=True),
    ),
)

PRISTINE = entry(
    "gpu.kubenexus.io/is-pristine",
    on="Node",
    values=Bool(),
    default=None,
    otherwise="worked out from what runs there",
    meaning="Whether no GPU of the node is in use. `false` is believed, `true` is checked.",
)

HEALTH = entry(
    "gpu.kubenexus.io/health-<check>",
    on="Node",
    values=Text("ok"),
    default=None,
    meaning="The result of a health check of the node's GPUs.",
)

HARDWARE_TIER = entry(
    "hardware.kubenexus.io/tier",
    on="Node",
    values=OneOf(
        ("premium", "standard", "economy"), also={"gold": "premium", "silver": "standard", "bronze": "economy"}
    ),
    default=None,
    otherwise="from the GPU model",
    meaning="How precious the node is; tenants are steered to the tier that matches theirs.",
    aliases=("hardware.kubenexus.io/gpu-tier",),
)

GENERATION = entry(
    "hardware.kubenexus.io/gpu-gen",
    on="Node",
    values=Text("hopper"),
    default=None,
    meaning="The generation of the node's GPUs.",
)

COST_HOUR = entry(
    "hardware.kubenexus.io/cost-hour",
    on="Node",
    values=Price(),
    default=None,
    meaning="What the node costs in an hour, for the cost report.",
)

CLASS = entry(
    "gpu.nvidia.com/class",
    on="Node",
    values=Text("h100"),
    default=None,
    kind=Kind.LABEL,
    meaning="The class by which an autoscaler adds nodes; the admission webhook selects by it.",
)

SECTION = section("GPUs and hardware", "What pods ask for, and what is written on nodes by hand.", globals())
