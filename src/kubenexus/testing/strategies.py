"""Hypothesis strategies for random clusters, to test plugins against their references. Hypothesis must be installed.

Alphabets are small on purpose, so that values collide: five nodes, six pods, two zones, three ports. Rare cases are
common here: resources that a node lacks or does not mention, overcommitted nodes, free rows of removed nodes, amounts
near 2**62, pods recreated under the same name, bound pods that cannot be read.

    clusters()   a ledger and its reference after random events (`testing.harness.CheckedCluster`)
    pods()       incoming pods
    nodes()      a single node
    events()     possible next events: a name of a ledger's method and its arguments

Each part of an object is one choice among ready-made values, the plainest first: quick to draw, and Hypothesis shrinks
to readable examples.
"""

from itertools import product
from typing import Any, Final

import msgspec
from hypothesis import strategies as st

from kubenexus.api.core import (
    Container,
    ContainerStatus,
    Node,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Pod,
    PodCondition,
    PodResourceClaim,
    PreferredSchedulingTerm,
    ResourceList,
    ResourceRequirements,
    RestartRule,
    Taint,
    Toleration,
    VolumeMount,
)
from kubenexus.api.devices.device import UNKNOWN, Device, NodeDevices
from kubenexus.api.features import SCHEDULING_FEATURES
from kubenexus.base.arrays import AMOUNT_CAP, FLOAT_EXACT_MAX
from kubenexus.testing.builders import HOSTNAME, ZONE, a_container, a_device_class, a_node, a_pod, a_port, a_term
from kubenexus.testing.harness import CheckedCluster, readable

NODES: Final = ("n0", "n1", "n2", "n3", "n4")
PODS: Final = ("p0", "p1", "p2", "p3", "p4", "p5")
GPU, FPGA, HUGEPAGES, STORAGE = EXTENDED = ("example.com/gpu", "vendor.io/fpga", "hugepages-2Mi", "ephemeral-storage")
EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
IMAGES: Final = ("app:1", "db:latest", "host:5000/big:2")
HUGE: Final = (str(AMOUNT_CAP - 1), str(AMOUNT_CAP), str(2**61), str(FLOAT_EXACT_MAX), str(FLOAT_EXACT_MAX + 1))

# --- the alphabets ----------------------------------------------------------------------------------------------------

# What a node offers: anything may be 0 or missing.
CAPACITIES: Final[list[ResourceList]] = [
    {"cpu": 4, "memory": "8Gi", "pods": 110},
    {"cpu": 2, "memory": "4Gi", "pods": 4, GPU: 2, FPGA: 1},
    {"cpu": 2, "memory": "2Gi", "pods": 3, STORAGE: "1Gi", HUGEPAGES: "4Mi"},
    {"cpu": "1500m", "memory": "1Gi", "pods": 110, GPU: 4},
    {"cpu": 1, "memory": "4Gi", "pods": 2, GPU: "0", STORAGE: "0"},
    {"cpu": 0, "memory": "1Gi", "pods": 3},
    {"cpu": 4, "pods": 4, FPGA: HUGE[0]},
    {"memory": "4Gi", "pods": 110, GPU: 1},
    {"cpu": 64, "memory": HUGE[3], "pods": 110, STORAGE: "2Gi"},
    {"cpu": 64, "memory": HUGE[4], "pods": 110, GPU: 2},
    {"cpu": HUGE[4], "memory": HUGE[0], "pods": 4},
    {"cpu": 4, "memory": str(AMOUNT_CAP // 3), "pods": 110, HUGEPAGES: "0"},
    {"cpu": 8, "memory": "8Gi", "pods": 0},
    {"pods": 5},
    {},
]
# What a container requests. An explicit 0 differs from a missing amount.
REQUESTS: Final[list[ResourceList | None]] = [
    {"cpu": "100m", "memory": "100Mi"},
    {"cpu": "250m", "memory": "512Mi"},
    {"cpu": 1, "memory": "1Gi"},
    None,
    {"cpu": "500m"},
    {"memory": "1Gi"},
    {"cpu": 0, "memory": "200Mi"},
    {"cpu": "1n", "memory": 0},
    {"cpu": 0, "memory": 0},
    {"cpu": 1, "memory": "1Gi", GPU: 1},
    {"cpu": "250m", GPU: 2, FPGA: 1},
    {"memory": "512Mi", STORAGE: "512Mi"},
    {"cpu": 1, HUGEPAGES: "2Mi", GPU: 0},
    {GPU: 1},
    {"cpu": 5, "memory": "5Gi"},
    {FPGA: HUGE[1]},
    *[ResourceList(cpu="100m", memory=amount) for amount in HUGE],
    {"cpu": HUGE[3]},
]
TAINTS: Final = [Taint(key=k, value=v, effect=e) for e, k, v in product(EFFECTS, ("gpu", "spot"), ("", "yes"))]
TOLERATIONS: Final = [
    Toleration(key=key, operator=operator, value=value, effect=effect)
    for key, operator, value, effect in product(
        ("gpu", "spot", "node.kubernetes.io/unschedulable", ""),
        ("Exists", "Equal", "", "Gt", "Maybe"),
        ("", "yes"),
        ("", *EFFECTS),
    )
]
LABELS: Final = {ZONE: ("a", "b"), "cores": ("4", "16", "-1", "many", ""), "disk": ("ssd", "")}
# All operators, on labels and on the name; some that upstream cannot parse.
EXPRESSIONS: Final = [
    "",
    *(f"{ZONE} {rest}" for rest in ("In a", "In a b", "NotIn b", "Exists", "DoesNotExist", "In never")),
    *(f"cores {rest}" for rest in ("Gt 4", "Lt 5", "Gt 0", "Lt 0", "NotIn 4 16", "Exists", "In many -1")),
    *(f"disk {rest}" for rest in ("In ssd", "NotIn ssd", "DoesNotExist")),
    f"{ZONE} In a and cores Gt 4",
    "nobody/has-this NotIn x",
    *("cores Gt -1", "cores Lt many", "cores Gt 99999999999999999999", "disk Like ssd", "disk In", "disk Exists ssd"),
]
FIELDS: Final = [
    "",
    *(f"metadata.name In {name}" for name in ("n0", "n1", "n9")),
    "metadata.name NotIn n0",
    "metadata.name In n0 and metadata.name In n1",
    *("metadata.name In n0 n1", "metadata.name Exists"),
]
EMPTY_VALUE: Final = NodeSelectorTerm(
    match_expressions=[NodeSelectorRequirement(key="disk", operator="In", values=[""])],
    match_fields=[NodeSelectorRequirement(key="metadata.namespace", operator="In", values=[""])],
)
TERMS: Final = [a_term(e) for e in EXPRESSIONS] + [a_term(f"{e} and {f}") for e, f in product(EXPRESSIONS[:10], FIELDS)]
PORTS: Final = [
    a_port(text) for text in (80, "80/UDP", "10.0.0.1:80", "10.0.0.2:80", "0.0.0.0:443", "10.0.0.1:443", 443, 0)
]

# --- parts ------------------------------------------------------------------------------------------------------------


def _mostly(value: Any, *others: Any, times: int = 6) -> st.SearchStrategy[Any]:
    return st.sampled_from([value] * times + list(others))


def _few(values: list[Any], most: int = 2) -> st.SearchStrategy[list[Any]]:
    """Mostly empty lists."""
    return _NONE | _NONE | st.lists(st.sampled_from(values), max_size=most)


_NONE: Final[st.SearchStrategy[list[Any]]] = st.builds(list)
_REQUESTS: Final = st.sampled_from(REQUESTS)
_PORTS: Final = _few(PORTS)
_TAINTS: Final = _few(TAINTS)
_TOLERATIONS: Final = _few(TOLERATIONS)
_IMAGE: Final = st.sampled_from([*IMAGES, "db", "host:5000/big", "nobody"])
_RULES: Final = _mostly([], [RestartRule(action="RestartAllContainers")], times=15)
_MOUNTS: Final = _mostly([], [VolumeMount(bind_mount_options=["noexec"])], times=15)
_IMAGES: Final = st.dictionaries(st.sampled_from(IMAGES), st.sampled_from([50 << 20, 300 << 20, 2 << 30]))
_FEATURES: Final = _few(sorted(SCHEDULING_FEATURES), 3)
_MARKS: Final = st.fixed_dictionaries({}, optional={k: st.sampled_from(v) for k, v in LABELS.items()})
_TERMS: Final = st.lists(st.sampled_from([*TERMS, EMPTY_VALUE]), min_size=1, max_size=2)
_REQUIRED: Final = st.none() | st.none() | _TERMS
_PREFERENCE: Final = st.builds(
    PreferredSchedulingTerm, weight=st.sampled_from([1, 7, 100, 0]), preference=st.sampled_from([*TERMS, EMPTY_VALUE])
)
_PREFERRED: Final = _NONE | _NONE | st.lists(_PREFERENCE, max_size=2)
_SELECTOR: Final = _mostly({}, {"disk": "ssd"}, {ZONE: "a", "disk": ""})
_RESIZED: Final = st.builds(
    ContainerStatus,
    name=st.just("main"),
    allocated_resources=_REQUESTS,
    resources=st.none() | st.builds(ResourceRequirements, requests=_REQUESTS),
)
_CONDITIONS: Final = _mostly(
    [],
    [PodCondition(type="PodResizePending", reason="Infeasible")],
    [PodCondition(type="PodResizePending", reason="Deferred")],
)
_STATUS: Final = st.fixed_dictionaries(
    {
        "container_statuses": _NONE | _NONE | st.lists(_RESIZED, max_size=1),
        "conditions": _CONDITIONS,
        "phase": _mostly("Running", "", "Succeeded", "Failed"),
    }
)
_FLAG: Final = _mostly(False, True)
_CLAIMS: Final = _mostly(
    [],
    [PodResourceClaim(name="gpu", resource_claim_name="mine")],
    [PodResourceClaim(name=f"c{i}", resource_claim_template_name="t") for i in range(6)],
    times=15,
)
_APP: Final = st.sampled_from(["web", "db"])
_NEAR: Final = _mostly([], [f"app=web per {ZONE}"], [f"app=db per {HOSTNAME}"], times=10)
_APART: Final = _mostly([], [f"app=web per {HOSTNAME}"], [f"app=db per {ZONE}"], times=10)


@st.composite
def containers(draw: st.DrawFn, name: str = "main") -> Container:
    return a_container(
        name,
        requests=draw(_REQUESTS),
        image=draw(_IMAGE),
        ports=draw(_PORTS),
        restart_policy_rules=draw(_RULES),
        volume_mounts=draw(_MOUNTS),
    )


_CONTAINERS: Final = st.lists(containers(), min_size=1, max_size=2)
_SIDECARS: Final = _NONE | _NONE | st.lists(containers("sidecar"), max_size=1)
_INIT: Final = _NONE | _NONE | st.lists(containers("init"), max_size=1)

# --- whole objects ----------------------------------------------------------------------------------------------------


@st.composite
def nodes(draw: st.DrawFn, name: str = "", images: dict[str, int] | None = None) -> Node:
    """A node; without `name` one of `NODES`. `images` are all images, if their sizes must agree between nodes."""
    has = draw(_IMAGES)
    node = a_node(
        name or draw(st.sampled_from(NODES)),
        uid=draw(_mostly("1", "2")),
        labels=draw(_MARKS),
        taints=draw(_TAINTS),
        cordoned=draw(_FLAG),
        images=has if images is None else {image: images[image] for image in has},
        features=draw(_FEATURES),
    )
    offered = draw(st.sampled_from(CAPACITIES))
    return msgspec.structs.replace(node, status=msgspec.structs.replace(node.status, allocatable=offered, capacity={}))


@st.composite
def pods(
    draw: st.DrawFn,
    name: str = "",
    node: str = "",
    nominated: str = "",
    *,
    running: bool = False,
    pinned: bool = True,
    claiming: bool = False,
) -> Pod:
    """A pod; without `name` one of `PODS`.

    `running`: it may be in the middle of a resize in place, or finished. `pinned`: it may require a node by name.
    `claiming`: it may have device claims.
    """
    called = name or draw(st.sampled_from(PODS))
    required = draw(_REQUIRED)
    if not pinned and required:
        required = [t for t in required if not t.match_fields] or None
    return a_pod(
        called,
        uid=f"{called}-{draw(_mostly(1, 2))}",
        labels={"index": called, "app": draw(_APP)},
        containers=draw(_CONTAINERS),
        sidecars=draw(_SIDECARS),
        init=draw(_INIT),
        pod_level=draw(st.none() | st.none() | st.none() | _REQUESTS),
        overhead=draw(_mostly(None, {"cpu": "50m"})),
        tolerates=draw(_TOLERATIONS),
        selects=draw(_SELECTOR),
        requires=required,
        prefers=draw(_PREFERRED),
        near=draw(_NEAR),
        apart=draw(_APART),
        priority=draw(st.sampled_from([0, 0, 10, -5])),
        node=node,
        nominated=nominated,
        image_volumes=draw(_mostly([], ["db"])),
        resource_claims=draw(_CLAIMS) if claiming else [],
        host_network=(shared := draw(_FLAG)),
        host_users=not shared,
        status=draw(_STATUS) if running else None,
    )


def devices() -> st.SearchStrategy[NodeDevices]:
    """The devices that a node may have: none, or up to two, which it may offer by number and may share."""
    sizes, resources = st.sampled_from([UNKNOWN, 16 << 30]), st.sampled_from(["", GPU])
    known = {"memory": sizes, "resource": resources, "healthy": st.booleans(), "replicas": st.sampled_from([1, 1, 2])}
    two = st.tuples(*(st.builds(Device, name=st.just(name), **known) for name in ("gpu-0", "gpu-1")))
    some = st.tuples(two, st.integers(0, 2)).map(lambda drawn: drawn[0][: drawn[1]])
    return st.builds(NodeDevices, some, st.booleans())


def unreadable(name: str, node: str) -> Pod:
    """A pod with invalid amounts."""
    return a_pod(name, uid=f"{name}-1", node=node, requests={"cpu": "a lot"})


@st.composite
def events(draw: st.DrawFn) -> tuple[str, tuple[Any, ...]]:
    """An event for a ledger: the method's name and its arguments."""
    name, node, event = draw(st.sampled_from(PODS)), draw(st.sampled_from(NODES)), draw(st.sampled_from(_EVENTS))
    match event:
        case "upsert_node":
            return event, (draw(nodes(node)),)
        case "upsert_pod":
            return event, (draw(pods(name, node, running=True)),)
        case "unreadable":
            return "upsert_pod", (unreadable(name, node),)
        case "assume":
            return event, (draw(pods(name)), node, 0.0)
        case "upsert_device_class":
            return event, (a_device_class("c", resource=draw(st.sampled_from(EXTENDED[:2]))),)
        case "remove_device_class":
            return event, ("c",)
    return event, (node if event == "remove_node" else f"default/{name}",)


_EVENTS: Final = [
    *["upsert_node", "upsert_pod", "assume"] * 3,
    *("remove_node", "remove_pod", "forget", "upsert_device_class", "remove_device_class", "unreadable"),
]


@st.composite
def clusters(draw: st.DrawFn, most: int = 10) -> CheckedCluster:
    """A ledger and its reference: a few nodes, and then random events."""
    cluster = CheckedCluster.of(draw(nodes(name)) for name in NODES[: draw(st.integers(0, 5))])
    for event, args in draw(st.lists(events(), max_size=most)):
        if possible(cluster, event, args):
            cluster.tell(event, *args)
    return cluster


def possible(cluster: CheckedCluster, event: str, args: tuple[Any, ...]) -> bool:
    """Whether the event can happen: a pod is assumed once, on an existing node, and a readable placed pod stays
    readable."""
    reference = cluster.reference
    if event == "upsert_pod":
        return readable(args[0]) or args[0].key not in reference.placed()
    known = event == "assume" and (args[0].key in reference.placed() or args[0].key in reference.unreadable)
    return event != "assume" or (args[1] in reference.nodes and not known)
