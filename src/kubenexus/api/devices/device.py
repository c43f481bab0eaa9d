"""A device of a node: what is known about it, and which source each fact comes from."""

import enum

import msgspec

UNKNOWN = -1  # of a number: no source has it
MAX_DEVICES = 64  # of one node: a set of devices is a 64-bit word (docs/adr/0013). Further ones are only counted
MAX_MEMORY = 1 << 50  # bytes of a device. A thousand times as much is still an int64


class DeviceKind(enum.StrEnum):
    """What a pod gets when it gets the device."""

    GPU = "gpu"
    MIG = "mig"  # a hardware slice of a GPU
    ACCELERATOR = "accelerator"  # neither: a TPU, Gaudi or Neuron device


class FactSource(enum.StrEnum):
    """Where a fact about a device comes from, the best first. Each field has the first source that knows it."""

    DRA = "dra"  # a complete pool of ResourceSlices
    NRT = "nrt"  # zones of the node's NodeResourceTopology
    GFD = "gfd"  # labels of GPU Feature Discovery
    NFD = "nfd"  # labels of Node Feature Discovery
    MANUAL = "manual"  # labels and annotations that an administrator sets
    CLOUD = "cloud"  # labels of the cloud: the accelerator, or the type of the machine
    ALLOCATABLE = "allocatable"  # the resources that the kubelet offers
    MODEL = "model"  # what the model's name implies (`devices.models`)


class Link(enum.StrEnum):
    """What joins the devices of an island."""

    NVSWITCH = "nvswitch"
    NVLINK = "nvlink"
    XGMI = "xgmi"  # AMD's Infinity Fabric
    PCIE = "pcie"
    UNKNOWN = ""


class Device(msgspec.Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """One device. Texts are "" and numbers `UNKNOWN` where no source has the fact.

    `resource` is the extended resource by which the kubelet offers it; "" if none does. `replicas` is how often: more
    than once under time slicing. `memory` is in bytes and as reported. `nominal_memory` is the size that the model is
    sold with, which users mean when they ask for an 80Gi card that reports 79.6Gi. `numa`, `switch` and `island` are
    numbers within the node: devices with equal ones share a NUMA node, a PCIe root or switch, or are joined by a link
    better than PCIe, directly or through others. `peers` are the names of directly linked devices where not all of the
    island are. `bandwidth` is that of its links together, in bits a second. `clique` is the NVLink domain among nodes.
    `sources` has the source of each field that is known.
    """

    name: str
    kind: DeviceKind = DeviceKind.GPU
    vendor: str = ""
    resource: str = ""
    replicas: int = 1
    model: str = ""
    family: str = ""
    profile: str = ""
    parent: str = ""
    uuid: str = ""
    pci_address: str = ""
    memory: int = UNKNOWN
    nominal_memory: int = UNKNOWN
    numa: int = UNKNOWN
    switch: int = UNKNOWN
    island: int = UNKNOWN
    link: Link = Link.UNKNOWN
    peers: tuple[str, ...] = ()
    bandwidth: int = UNKNOWN
    clique: str = ""
    healthy: bool = True
    sources: dict[str, FactSource] = {}


class NodeDevices(msgspec.Struct, frozen=True, gc=False):
    """The devices of one node, at most `MAX_DEVICES`. `shared`: pods may hold parts of a card.

    `warnings` are sentences about values that cannot be read, each naming the key.
    """

    devices: tuple[Device, ...] = ()
    shared: bool = False
    warnings: tuple[str, ...] = ()


NO_DEVICES = NodeDevices()
