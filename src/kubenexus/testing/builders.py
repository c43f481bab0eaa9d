"""Builds pods and nodes in one line, for tests of the scheduler and of plugins.

    a_pod("web-0", cpu="500m", memory="1Gi", labels={"app": "web"}, tolerates=["gpu:NoSchedule"])
    a_node("n1", cpu=8, memory="32Gi", zone="a", taints=["gpu=yes:NoSchedule"])

Defaults are those of the API server and the kubelet: a pod without amounts requests nothing, a node has its hostname
label and capacity for 110 pods. Every object has a UID made from its name. Texts are written as in `kubectl`: taints
`key=value:Effect`, requirements `key Operator value...`.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from kubenexus.api.core import (
    Affinity,
    Container,
    ContainerImage,
    ContainerPort,
    ImageVolumeSource,
    Node,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    NodeSpec,
    NodeStatus,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    PodStatus,
    PreferredSchedulingTerm,
    QuantityText,
    ResourceList,
    ResourceRequirements,
    SchedulingGate,
    Taint,
    Toleration,
    Volume,
)
from kubenexus.api.devices.resource_claim import DeviceClass, DeviceClassSpec
from kubenexus.api.keys import network
from kubenexus.api.meta import ObjectMeta
from kubenexus.api.selectors import LabelSelector

HOSTNAME = network.HOSTNAME.key
ZONE = "topology.kubernetes.io/zone"
GPU = "nvidia.com/gpu"

Amounts = Mapping[str, QuantityText]


def a_pod(  # noqa: PLR0913 - a keyword for each thing a test may want to say
    name: str = "pod",
    *,
    namespace: str = "default",
    uid: str | None = None,
    cpu: QuantityText | None = None,
    memory: QuantityText | None = None,
    gpu: int | None = None,
    requests: Amounts | None = None,
    image: str = "app:1",
    ports: Iterable[str | int | ContainerPort] = (),
    containers: Iterable[Container] | None = None,
    sidecars: Iterable[Container] = (),
    init: Iterable[Container] = (),
    pod_level: Amounts | None = None,
    overhead: Amounts | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    tolerates: Iterable[str | Toleration] = (),
    selects: Mapping[str, str] | None = None,
    requires: Iterable[str | NodeSelectorTerm] | None = None,
    prefers: Mapping[str, int] | Iterable[PreferredSchedulingTerm] = (),
    near: Iterable[str | PodAffinityTerm] = (),
    apart: Iterable[str | PodAffinityTerm] = (),
    priority: int = 0,
    node: str = "",
    nominated: str = "",
    phase: str = "",
    gates: Iterable[str] = (),
    image_volumes: Iterable[str] = (),
    status: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Pod:
    """Returns a pod.

    `requires` are alternatives: each a term, or a text of requirements joined by ` and `. `prefers` maps such texts to
    weights. `near` and `apart` are pods it must or must not share a topology with (`app=web per zone`). `sidecars` run
    beside the containers, `init` before them. `containers` replaces the one container that `cpu`, `memory`, `gpu`,
    `requests`, `image` and `ports` describe. Further keywords are fields of the spec, `status` fields of the status, by
    their names in `api.core`.
    """
    main = a_container(cpu=cpu, memory=memory, gpu=gpu, requests=requests, image=image, ports=ports)
    inits = [*(_restarting(c, "Always") for c in sidecars), *(_restarting(c, "") for c in init)]
    return Pod(
        metadata=ObjectMeta(
            name=name,
            namespace=namespace,
            uid=f"uid of {namespace}/{name}" if uid is None else uid,
            labels=dict(labels or {}),
            annotations=dict(annotations or {}),
        ),
        spec=PodSpec(
            node_name=node,
            priority=priority,
            containers=[main] if containers is None else list(containers),
            init_containers=inits,
            resources=None if pod_level is None else ResourceRequirements(requests=dict(pod_level)),
            overhead=None if overhead is None else dict(overhead),
            tolerations=[a_toleration(each) if isinstance(each, str) else each for each in tolerates],
            node_selector=dict(selects or {}),
            affinity=_affinity(requires, prefers, near, apart),
            scheduling_gates=[SchedulingGate(name=gate) for gate in gates],
            volumes=[Volume(name=f"v{i}", image=ImageVolumeSource(reference=r)) for i, r in enumerate(image_volumes)],
            **spec,
        ),
        status=PodStatus(**{"phase": phase, "nominated_node_name": nominated, **(status or {})}),
    )


def a_node(  # noqa: PLR0913
    name: str = "node",
    *,
    uid: str | None = None,
    cpu: QuantityText = 8,
    memory: QuantityText = "32Gi",
    pods: QuantityText = 110,
    gpu: int = 0,
    resources: Amounts | None = None,
    zone: str = "",
    labels: Mapping[str, str] | None = None,
    taints: Iterable[str | Taint] = (),
    cordoned: bool = False,
    images: Mapping[str, int] | None = None,
    features: Iterable[str] = (),
) -> Node:
    """Returns a node. `resources` add to (or replace) cpu, memory, pods and gpu; `images` maps names to bytes."""
    offered: dict[str, QuantityText] = {"cpu": cpu, "memory": memory, "pods": pods}
    if gpu:
        offered[GPU] = gpu
    offered.update(resources or {})
    marks = {HOSTNAME: name} | ({ZONE: zone} if zone else {}) | dict(labels or {})
    return Node(
        metadata=ObjectMeta(name=name, uid=f"uid of {name}" if uid is None else uid, labels=marks),
        spec=NodeSpec(unschedulable=cordoned, taints=[a_taint(t) if isinstance(t, str) else t for t in taints]),
        status=NodeStatus(
            allocatable=offered,
            capacity=dict(offered),
            images=[ContainerImage(names=[image], size_bytes=size) for image, size in (images or {}).items()],
            declared_features=list(features),
        ),
    )


def a_container(
    name: str = "main",
    *,
    cpu: QuantityText | None = None,
    memory: QuantityText | None = None,
    gpu: int | None = None,
    requests: Amounts | None = None,
    image: str = "app:1",
    ports: Iterable[str | int | ContainerPort] = (),
    **fields: Any,
) -> Container:
    """Returns a container. A GPU is also set as a limit, as users do; the API server copies that to the request."""
    asked = {n: a for n, a in (("cpu", cpu), ("memory", memory), (GPU, gpu)) if a is not None} | dict(requests or {})
    limits: ResourceList | None = {GPU: gpu} if gpu is not None else None
    return Container(
        name=name,
        image=image,
        resources=ResourceRequirements(requests=asked or None, limits=limits),
        ports=[port if isinstance(port, ContainerPort) else a_port(port) for port in ports],
        **fields,
    )


def a_port(text: str | int) -> ContainerPort:
    """Parses a host port: `80`, `53/UDP`, `10.0.0.1:80` or `10.0.0.1:53/UDP`."""
    place, _, protocol = str(text).partition("/")
    address, _, number = place.rpartition(":")
    return ContainerPort(host_port=int(number), host_ip=address, protocol=protocol or "TCP")


def a_taint(text: str) -> Taint:
    """Parses `key=value:Effect` or `key:Effect`."""
    mark, _, effect = text.rpartition(":")
    key, _, value = mark.partition("=")
    return Taint(key=key, value=value, effect=effect)


def a_toleration(text: str) -> Toleration:
    """Parses `key=value:Effect`, `key:Effect` (any value), `key` (also any effect) or `*` (everything)."""
    mark, _, effect = text.partition(":")
    key, equal, value = mark.partition("=")
    key = "" if key == "*" else key
    return Toleration(key=key, operator="Equal" if equal else "Exists", value=value, effect=effect)


def a_term(text: str) -> NodeSelectorTerm:
    """Parses `zone In a b and cores Gt 4 and metadata.name In n1`: requirements on `metadata.name` go into
    `matchFields`."""
    wanted = [_requirement(part) for part in text.split(" and ") if part.strip()]
    return NodeSelectorTerm(
        match_expressions=[each for each in wanted if each.key != "metadata.name"],
        match_fields=[each for each in wanted if each.key == "metadata.name"],
    )


def a_pod_term(text: str) -> PodAffinityTerm:
    """Parses `app=web per topology.kubernetes.io/zone`, or `per ...` alone, which selects all labels."""
    labels, _, key = text.rpartition("per ")
    wanted = dict(part.split("=") for part in labels.strip().split(",") if part)
    return PodAffinityTerm(topology_key=key, label_selector=LabelSelector(match_labels=wanted))


def a_device_class(name: str, *, resource: str = "") -> DeviceClass:
    """Returns a device class that backs an extended resource."""
    return DeviceClass(metadata=ObjectMeta(name=name), spec=DeviceClassSpec(extended_resource_name=resource))


def _requirement(text: str) -> NodeSelectorRequirement:
    key, operator, *values = text.split()
    return NodeSelectorRequirement(key=key, operator=operator, values=values)


def _affinity(
    requires: Iterable[str | NodeSelectorTerm] | None,
    prefers: Mapping[str, int] | Iterable[PreferredSchedulingTerm],
    near: Iterable[str | PodAffinityTerm],
    apart: Iterable[str | PodAffinityTerm],
) -> Affinity | None:
    if isinstance(prefers, Mapping):
        prefers = [PreferredSchedulingTerm(weight=w, preference=a_term(text)) for text, w in prefers.items()]
    wishes, required = list(prefers), None
    if requires is not None:
        terms = [a_term(each) if isinstance(each, str) else each for each in requires]
        required = NodeSelector(node_selector_terms=terms)
    affinity = Affinity(
        node_affinity=NodeAffinity(required=required, preferred=wishes) if wishes or required is not None else None,
        pod_affinity=_pod_affinity(near),
        pod_anti_affinity=_pod_affinity(apart),
    )
    return None if affinity == Affinity() else affinity


def _pod_affinity(terms: Iterable[str | PodAffinityTerm]) -> PodAffinity | None:
    required = [a_pod_term(each) if isinstance(each, str) else each for each in terms]
    return PodAffinity(required=required) if required else None


def _restarting(container: Container, policy: str) -> Container:
    return msgspec.structs.replace(container, restart_policy=policy)
