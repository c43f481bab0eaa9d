"""Labels that discovery agents write on nodes. We only read them; GPU Feature Discovery is the practical source."""

from kubenexus.api.keys.entry import Kind, entry, section
from kubenexus.api.keys.values import Bool, Int, OneOf, Text

PRODUCT = entry(
    "nvidia.com/gpu.product",
    on="Node",
    values=Text("NVIDIA-A100-SXM4-80GB"),
    default=None,
    kind=Kind.LABEL,
    meaning="The product name of the GPUs.",
)

MEMORY_MIB = entry(
    "nvidia.com/gpu.memory",
    on="Node",
    values=Int(example="81920"),
    default=None,
    kind=Kind.LABEL,
    meaning="The memory of each GPU in MiB.",
)

COUNT = entry(
    "nvidia.com/gpu.count",
    on="Node",
    values=Int(most=4096, example="8"),
    default=None,
    kind=Kind.LABEL,
    meaning="How many GPUs the node has.",
)

FAMILY = entry(
    "nvidia.com/gpu.family",
    on="Node",
    values=Text("ampere"),
    default=None,
    kind=Kind.LABEL,
    meaning="The architecture of the GPUs.",
)

REPLICAS = entry(
    "nvidia.com/gpu.replicas",
    on="Node",
    values=Int(most=4096, example="4"),
    default=None,
    kind=Kind.LABEL,
    meaning="Into how many shares each GPU is divided by time slicing; 0 or 1 means whole.",
)

CLIQUE = entry(
    "nvidia.com/gpu.clique",
    on="Node",
    values=Text("7b968a6d-c8aa-45e1-9e07-e1e51be99c31.1"),
    default=None,
    kind=Kind.LABEL,
    meaning="The NVLink domain that the node is in: the fabric's UUID and the clique, unique in the cluster.",
)

MIG_STRATEGY = entry(
    "nvidia.com/mig.strategy",
    on="Node",
    values=OneOf(("none", "single", "mixed")),
    default="none",
    kind=Kind.LABEL,
    meaning="How the node offers MIG devices.",
)

MIG = entry(
    "nvidia.com/mig-<profile>.<attribute>",
    on="Node",
    values=Text("7"),
    default=None,
    kind=Kind.LABEL,
    meaning="What the node says of its MIG devices of a profile, such as `nvidia.com/mig-1g.10gb.count`.",
)

PCI_PRESENT = entry(
    "feature.node.kubernetes.io/pci-<device>.present",
    on="Node",
    values=Bool(),
    default=False,
    kind=Kind.LABEL,
    meaning="A PCI device is there: class and vendor, with the device where NFD is set to tell (`0302_10de_2330`).",
)

PCI_DEVICE_PRESENT = entry(
    "feature.node.kubernetes.io/pci-<vendor>.device.<id>.present",
    on="Node",
    values=Bool(),
    default=False,
    kind=Kind.LABEL,
    meaning="The same in the form of a label made by hand; NFD itself does not write it.",
)

PCI_DEVICE_COUNT = entry(
    "feature.node.kubernetes.io/pci-<vendor>.device.<id>.count",
    on="Node",
    values=Int(most=4096, example="8"),
    default=None,
    kind=Kind.LABEL,
    meaning="How many of them; made by hand or by a NodeFeatureRule.",
)

KWOK = entry(
    "kwok.x-k8s.io/node",
    on="Node",
    values=Text("fake"),
    default=None,
    kind=Kind.ANNOTATION,
    meaning="KWOK plays this node: pods on it never run anything.",
)

SECTION = section(
    "Discovered by other agents",
    "Written by GPU Feature Discovery, Node Feature Discovery and KWOK; read as they are.",
    globals(),
)
