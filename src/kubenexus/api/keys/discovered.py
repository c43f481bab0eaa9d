"""Labels that discovery agents and clouds write on nodes, mostly GPU Feature Discovery. KubeNexus only reads them."""

from typing import TypeVar

from kubenexus.api.keys.entry import KeyEntry, KeyKind, Spelling, define_key, section
from kubenexus.api.keys.values import Bool, Int, OneOf, Text, ValueType

T = TypeVar("T")


def _node_label(
    key: str, values: ValueType[T], meaning: str, aliases: tuple[str, ...] = (), *, recognised_only: bool = False
) -> KeyEntry[T | None]:
    """A label of nodes without a default."""
    return define_key(
        key,
        on="Node",
        values=values,
        default=None,
        kind=KeyKind.LABEL,
        meaning=meaning,
        aliases=aliases,
        recognised_only=recognised_only,
    )


PRODUCT = _node_label(
    "nvidia.com/gpu.product",
    values=Text("NVIDIA-A100-SXM4-80GB"),
    meaning="The product name of the GPUs.",
)

MEMORY_MIB = _node_label(
    "nvidia.com/gpu.memory",
    values=Int(example="81920"),
    meaning="The memory of each GPU in MiB.",
)

COUNT = _node_label(
    "nvidia.com/gpu.count",
    values=Int(most=4096, example="8"),
    meaning="How many GPUs the node has.",
)

FAMILY = _node_label(
    "nvidia.com/gpu.family",
    values=Text("ampere"),
    meaning="The architecture of the GPUs.",
    recognised_only=True,
)

REPLICAS = _node_label(
    "nvidia.com/gpu.replicas",
    values=Int(most=4096, example="4"),
    meaning="Into how many shares each GPU is divided by time slicing; 0 or 1 means whole.",
    aliases=("cloud.google.com/gke-max-shared-clients-per-gpu",),
)

SHARING_STRATEGY = define_key(
    "nvidia.com/gpu.sharing-strategy",
    on="Node",
    values=OneOf(("none", "time-slicing", "mps")),
    default="none",
    kind=KeyKind.LABEL,
    meaning="How the device plugin shares the node's GPUs among pods.",
    aliases=(
        Spelling("cloud.google.com/gke-gpu-sharing-strategy", KeyKind.LABEL, says={"time-sharing": "time-slicing"}),
    ),
)

CLIQUE = _node_label(
    "nvidia.com/gpu.clique",
    values=Text("7b968a6d-c8aa-45e1-9e07-e1e51be99c31.1"),
    meaning="The NVLink domain that the node is in: the fabric's UUID and the clique, unique in the cluster.",
)

MIG_STRATEGY = define_key(
    "nvidia.com/mig.strategy",
    on="Node",
    values=OneOf(("none", "single", "mixed")),
    default="none",
    kind=KeyKind.LABEL,
    meaning="How the node offers MIG devices.",
    recognised_only=True,
)

MIG = _node_label(
    "nvidia.com/mig-<profile>.<attribute>",
    values=Text("7"),
    meaning="What the node says of its MIG devices of a profile, such as `nvidia.com/mig-1g.10gb.count`.",
)

PCI_PRESENT = define_key(
    "feature.node.kubernetes.io/pci-<device>.present",
    on="Node",
    values=Bool(),
    default=False,
    kind=KeyKind.LABEL,
    meaning="A PCI device is there: class and vendor, with the device where NFD is set to tell (`0302_10de_2330`).",
)

PCI_DEVICE_PRESENT = define_key(
    "feature.node.kubernetes.io/pci-<vendor>.device.<id>.present",
    on="Node",
    values=Bool(),
    default=False,
    kind=KeyKind.LABEL,
    meaning="The same in the form of a label made by hand; NFD itself does not write it.",
)

PCI_DEVICE_COUNT = _node_label(
    "feature.node.kubernetes.io/pci-<vendor>.device.<id>.count",
    values=Int(most=4096, example="8"),
    meaning="How many of them; made by hand or by a NodeFeatureRule.",
)

GKE_ACCELERATOR = _node_label(
    "cloud.google.com/gke-accelerator",
    values=Text("nvidia-h100-80gb"),
    meaning="The model of the node's GPUs, written by GKE.",
)

GKE_PARTITION = _node_label(
    "cloud.google.com/gke-gpu-partition-size",
    values=Text("1g.10gb"),
    meaning="The MIG profile of all GPUs that the node offers, written by GKE.",
)

CLOUD_COUNT = _node_label(
    "karpenter.k8s.aws/instance-gpu-count",
    values=Int(most=4096, example="8"),
    meaning="How many GPUs the machine has. If the kubelet offers more, they are shared in a way that no label shows.",
    aliases=("karpenter.azure.com/sku-gpu-count", "cloud.google.com/gke-accelerator-count"),
)

KARPENTER_GPU = _node_label(
    "karpenter.k8s.aws/instance-gpu-name",
    values=Text("a100"),
    meaning="The model of the node's GPUs, written by Karpenter.",
    aliases=("karpenter.azure.com/sku-gpu-name",),
)

KARPENTER_GPU_MEMORY = _node_label(
    "karpenter.k8s.aws/instance-gpu-memory",
    values=Int(example="40960"),
    meaning="The memory of each GPU in MiB, written by Karpenter.",
)

INSTANCE_TYPE = _node_label(
    "node.kubernetes.io/instance-type",
    values=Text("p5.48xlarge"),
    meaning="The type of the machine; that of a machine with GPUs says which model they are.",
    aliases=("beta.kubernetes.io/instance-type",),
)

KWOK = define_key(
    "kwok.x-k8s.io/node",
    on="Node",
    values=Text("fake"),
    default=None,
    kind=KeyKind.ANNOTATION,
    meaning="KWOK plays this node: pods on it never run anything.",
    recognised_only=True,
)

SECTION = section(
    "Discovered by other agents",
    "Written by GPU Feature Discovery, Node Feature Discovery, clouds and KWOK; read as they are.",
    globals(),
)
