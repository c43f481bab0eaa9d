"""Random clusters with devices: islands, meshes, shared and time-sliced nodes, MIG, unhealthy cards, pods with and
without names."""

from typing import Any, Final

from hypothesis import strategies as st

from kubenexus.api.core import Node, Pod
from kubenexus.api.devices.device import UNKNOWN, Device, DeviceKind, Link, NodeDevices
from kubenexus.api.devices.device_share import WHOLE, DeviceShare, devices_annotation
from kubenexus.api.keys import gpu, tenant
from kubenexus.testing.builders import GPU, a_node, a_pod
from kubenexus.testing.harness import CheckedCluster

GIB: Final = 1 << 30
MIG: Final = "nvidia.com/mig-1g.10gb"
NODES: Final = ("n0", "n1", "n2")
MEMORIES: Final = (UNKNOWN, 24 * GIB, 40 * GIB, 80 * GIB - (400 << 20))
MODELS: Final = ("", "NVIDIA A100-SXM4-80GB", "NVIDIA H100 80GB HBM3")
LINKS: Final = (Link.NVSWITCH, Link.NVLINK, Link.PCIE, Link.UNKNOWN)
RESOURCES: Final = (GPU, GPU, GPU, GPU, "")
REPLICAS: Final = (1, 1, 1, 1, 2, 4)
SLOTS: Final = 8


@st.composite
def meshes(draw: st.DrawFn, size: int) -> list[set[int]]:
    """The direct links of each of `size` cards, each in both directions."""
    pairs = [(one, other) for one in range(size) for other in range(one + 1, size)]
    peers: list[set[int]] = [set() for _ in range(size)]
    for one, other in draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else ():
        peers[one].add(other)
        peers[other].add(one)
    return peers


@st.composite
def machines(draw: st.DrawFn, most: int = SLOTS) -> NodeDevices:
    """The devices of one node."""
    count = draw(st.sampled_from([each for each in (8, 4, 2, 1, 0, 6) if each <= most]))
    width = draw(st.sampled_from([count, 4, 2, 1])) or 1
    link, memory = draw(st.sampled_from(LINKS)), draw(st.sampled_from(MEMORIES))
    model, resource = draw(st.sampled_from(MODELS)), draw(st.sampled_from(RESOURCES))
    replicas = draw(st.sampled_from(REPLICAS))
    per_switch, per_numa = draw(st.sampled_from([2, 4, 100])), draw(st.sampled_from([4, 2, 100]))
    linked = draw(st.none() | st.none() | st.none() | meshes(count))
    sick = draw(st.sets(st.integers(0, SLOTS - 1), max_size=1))
    small = draw(st.sets(st.integers(0, SLOTS - 1), max_size=1))
    cards = [
        Device(
            name=f"gpu-{i}",
            vendor="nvidia",
            resource=resource,
            replicas=replicas,
            model=model,
            memory=16 * GIB if i in small else memory,
            nominal_memory=80 * GIB if memory > 70 * GIB and i not in small else UNKNOWN,
            numa=UNKNOWN if per_numa == 100 else i // per_numa,
            switch=UNKNOWN if per_switch == 100 else i // per_switch,
            island=UNKNOWN if width == 1 else i // width,
            link=link,
            peers=tuple(f"gpu-{peer}" for peer in sorted(linked[i])) if linked and width == count else (),
            bandwidth=900 * 10**9 if "H100" in model else UNKNOWN,
            healthy=i not in sick,
        )
        for i in range(count)
    ]
    slices = [
        Device(name=f"mig-{i}", kind=DeviceKind.MIG, vendor="nvidia", resource=MIG, memory=10 * GIB)
        for i in range(draw(st.sampled_from([0, 0, 0, 2])))
    ]
    return NodeDevices((*cards, *slices), draw(st.booleans()))


@st.composite
def offering_nodes(draw: st.DrawFn, name: str, machine: NodeDevices) -> Node:
    """A node whose kubelet offers the healthy devices, or all, or one more or less."""
    offered: dict[str, int] = {}
    unaware = draw(st.sampled_from([False, False, True]))  # of devices that others declare unhealthy
    for device in machine.devices:
        if device.resource and (device.healthy or unaware):
            offered[device.resource] = offered.get(device.resource, 0) + device.replicas
    change = draw(st.sampled_from([0, 0, 0, 0, -1, 1]))
    resources = {resource: str(max(0, amount + change)) for resource, amount in offered.items()}
    labels = draw(
        st.sampled_from(
            [
                *({}, {}),
                {gpu.HARDWARE_TIER.key: "economy"},
                {gpu.PRISTINE.key: "false", gpu.HARDWARE_TIER.key: "Gold"},
                {gpu.PRISTINE.key: "true"},
                {tenant.RESERVED_TIER.key: "gold", "hardware.kubenexus.io/gpu-tier": "standard"},
            ]
        )
    )
    return a_node(name, cpu=64, resources=resources, labels=labels)


WISHES: Final[tuple[dict[str, str], ...]] = (
    {},
    {},
    {gpu.VRAM_REQUEST.key: "20Gi"},
    {gpu.VRAM_REQUEST.key: "80Gi"},
    {gpu.VRAM_REQUEST_TOTAL.key: "60Gi"},
    {gpu.TYPE.key: "nvidia-a100"},
    {gpu.PREFER_NVLINK.key: "required"},
    {gpu.PREFER_NVLINK.key: "preferred"},
    {gpu.MIN_NVLINK_BANDWIDTH.key: "300Gbps"},
    {gpu.VRAM_REQUEST.key: "10Gi", gpu.PREFER_NVLINK.key: "required"},
)
PARTS: Final[tuple[dict[str, str], ...]] = (
    {gpu.FRACTION.key: "0.5"},
    {gpu.FRACTION.key: "0.3"},
    {gpu.SHARE_MEMORY.key: "10Gi"},
    {gpu.SHARE_MEMORY.key: "12345Mi"},
    {gpu.FRACTION.key: "0.25", gpu.SHARE_MEMORY.key: "10Gi"},
)


@st.composite
def device_pods(draw: st.DrawFn, name: str = "pod") -> Pod:
    """A pod that waits, and needs devices."""
    numbers = st.sampled_from([1, 1, 2, 3, 4, 8])
    wishes = draw(st.sampled_from(WISHES))
    match draw(st.sampled_from(["whole", "whole", "whole", "part", "parts", "slice", "both"])):
        case "whole":
            return a_pod(name, gpu=draw(numbers), annotations=wishes)
        case "part":
            return a_pod(name, annotations=draw(st.sampled_from(PARTS)))
        case "parts":
            return a_pod(name, gpu=draw(numbers), annotations=wishes | draw(st.sampled_from(PARTS)))
        case "slice":
            return a_pod(name, requests={MIG: draw(st.sampled_from([1, 2]))}, annotations=wishes)
    return a_pod(name, gpu=draw(numbers), requests={MIG: 1}, annotations=wishes)


@st.composite
def residents(draw: st.DrawFn, name: str, node: str, machine: NodeDevices) -> tuple[Pod, tuple[DeviceShare, ...]]:
    """A pod on a node and the devices that it has by name, none if another scheduler placed it."""
    devices = [device.name for device in machine.devices]
    kind = draw(st.sampled_from(["named", "named", "part", "part", "without names", "slice"]))
    if kind == "without names" or not devices:
        return a_pod(name, gpu=draw(st.sampled_from([1, 2])), node=node), ()
    chosen = tuple(draw(st.lists(st.sampled_from(devices), min_size=1, max_size=3, unique=True)))
    if kind == "part":
        share, memory = draw(st.sampled_from([(500, 8 * GIB), (250, 0), (300, 4 * GIB)]))
        part = (DeviceShare(chosen[0], share, memory),)
        return _with_names(a_pod(name, annotations={gpu.FRACTION.key: "0.5"}, node=node), part), part
    units = draw(st.sampled_from([WHOLE, WHOLE, WHOLE // 2]))
    takes = tuple(DeviceShare(each, units) for each in chosen)
    wanted: dict[str, Any] = {MIG: len(chosen)} if kind == "slice" else {GPU: len(chosen)}
    return _with_names(a_pod(name, requests=wanted, node=node), takes), takes


def _with_names(pod: Pod, takes: tuple[DeviceShare, ...]) -> Pod:
    pod.metadata.annotations[gpu.DEVICES.key] = devices_annotation(takes)
    return pod


@st.composite
def device_clusters(draw: st.DrawFn, nodes: int = 3, pods: int = 5, *, alike: bool = False) -> CheckedCluster:
    """Nodes with devices, and pods that hold some of them. `alike`: all nodes have the same machine."""
    cluster = CheckedCluster.of()
    found: dict[str, NodeDevices] = {}
    machine = draw(machines()) if alike else None
    for name in NODES[: draw(st.integers(1, nodes))]:
        found[name] = machine or draw(machines())
        cluster.tell("upsert_node", draw(offering_nodes(name, found[name])))
        cluster.tell("set_devices", name, found[name])
    for i in range(draw(st.integers(0, pods))):
        node = draw(st.sampled_from(sorted(found)))
        pod, _ = draw(residents(f"r{i}", node, found[node]))
        cluster.tell("upsert_pod", pod)
    return cluster
