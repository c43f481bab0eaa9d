"""Pods with one field grown to a number of entries. Each way to grow one is a dimension."""

from collections.abc import Callable
from typing import Any, Final

from kubenexus.api.keys import gpu, network, numa, tenant
from kubenexus.config.v1 import SCHEDULER

Json = dict[str, Any]
Grow = Callable[[Json, int], None]
BYTES: Final = 1_500_000  # the limit of an API server for one object
ANNOTATION_BYTES: Final = 256 << 10  # its limit for the annotations of one object, with their keys
APP: Final = {"matchLabels": {"app": "w"}}


def plain(name: str, node: str = "") -> Json:
    """Returns an ordinary pod of the shipped profile, which waits or runs on a node."""
    requests = {"cpu": "100m", "memory": "64Mi"}
    container = {"name": "main", "image": "registry.example/app:v1", "resources": {"requests": requests}}
    spec: Json = {"containers": [container], "schedulerName": SCHEDULER}
    if node:
        spec["nodeName"] = node
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}", "labels": {"app": "w"}}
    return {"metadata": meta, "spec": spec, "status": {"phase": "Running" if node else "Pending"}}


def _spread(key: str, selector: str, when: str) -> Grow:
    def grow(pod: Json, number: int) -> None:
        pod["spec"]["topologySpreadConstraints"] = [
            {
                "maxSkew": 1,
                "topologyKey": key.format(i),
                "whenUnsatisfiable": when,
                "labelSelector": {"matchLabels": {"app": selector.format(i)}},
            }
            for i in range(number)
        ]

    return grow


def _pod_affinity(kind: str, key: str, preferred: bool = False, **term: Any) -> Grow:
    """Terms that differ in their selector, or in the fields of `term`."""

    def grow(pod: Json, number: int) -> None:
        terms = []
        for i in range(number):
            made: Json = {"topologyKey": key.format(i), "labelSelector": {"matchLabels": {"app": f"w{i}"}}}
            for name, give in term.items():
                made[name] = give(i)
            terms.append({"weight": 1 + i % 100, "podAffinityTerm": made} if preferred else made)
        when = "preferred" if preferred else "required"
        _affinity(pod)[kind] = {f"{when}DuringSchedulingIgnoredDuringExecution": terms}

    return grow


def _in(key: str, *values: str, operator: str = "In") -> Json:
    return {"key": key, "operator": operator, "values": list(values)}


def _everybody_but(i: int) -> Json:
    return {"matchExpressions": [_in("app", f"x{i}", operator="NotIn")]}


def _wide_selector(fields: str) -> Grow:
    """One term with many requirements, values or namespaces."""

    def grow(pod: Json, number: int) -> None:
        selector: Json = {"matchExpressions": [_in(f"k{i}", "v", operator="NotIn") for i in range(number)]}
        if fields == "values":
            selector = {"matchExpressions": [_in("app", *(f"v{i}" for i in range(number)), operator="NotIn")]}
        term: Json = {"topologyKey": ZONE, "labelSelector": selector}
        if fields == "namespaces":
            term = {"topologyKey": ZONE, "labelSelector": APP, "namespaces": [f"n{i}" for i in range(number)]}
        terms = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        _affinity(pod)["podAntiAffinity"] = terms

    return grow


def _affinity(pod: Json) -> Json:
    made: Json = pod["spec"].setdefault("affinity", {})
    return made


def _node_terms(key: str, preferred: bool = False, operator: str = "In") -> Grow:
    def grow(pod: Json, number: int) -> None:
        terms = [{"matchExpressions": [_in(key.format(i), str(i), operator=operator)]} for i in range(number)]
        wishes = [{"weight": 1 + i % 100, "preference": term} for i, term in enumerate(terms)]
        _affinity(pod)["nodeAffinity"] = (
            {"preferredDuringSchedulingIgnoredDuringExecution": wishes}
            if preferred
            else {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        )

    return grow


def _node_term(make: Callable[[int], Json]) -> Grow:
    def grow(pod: Json, number: int) -> None:
        required = {"nodeSelectorTerms": [make(number)]}
        _affinity(pod)["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": required}

    return grow


def _node_selector(pod: Json, number: int) -> None:
    pod["spec"]["nodeSelector"] = {f"k{i}": "v" for i in range(number)}


def _tolerations(key: str) -> Grow:
    def grow(pod: Json, number: int) -> None:
        pod["spec"]["tolerations"] = [{"key": key.format(i), "operator": "Exists"} for i in range(number)]

    return grow


def _container(i: int, **more: Any) -> Json:
    """A container with the defaults of the API server."""
    usual = {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}
    return {"name": f"c{i}", "image": f"i{i}", "imagePullPolicy": "Always", **usual, **more}


def _containers(field: str, **more: Any) -> Grow:
    def grow(pod: Json, number: int) -> None:
        resources = {"requests": {"cpu": "1m"}}
        pod["spec"][field] = [_container(i, resources=resources, **more) for i in range(number)]

    return grow


def _resources(name: str, field: str = "requests", amount: str = "1") -> Grow:
    def grow(pod: Json, number: int) -> None:
        asked = {name.format(i): amount.format(i + 1) for i in range(number)}
        for each in {field, "limits"}:  # an extended resource must have both, and they must be equal
            pod["spec"]["containers"][0].setdefault("resources", {})[each] = asked

    return grow


def _resources_of_containers(pod: Json, number: int) -> None:
    """Sidecars, each with a resource of its own: the sum of the requests grows with each."""
    pod["spec"]["initContainers"] = [
        _container(i, restartPolicy="Always", resources={each: {f"e.co/r{i}": "1"} for each in ("requests", "limits")})
        for i in range(number)
    ]


def _ports(address: str) -> Grow:
    def grow(pod: Json, number: int) -> None:
        pod["spec"]["containers"][0]["ports"] = [
            {"hostPort": 1 + i % 65535, "hostIP": address.format(i // 250 % 250, i % 250), "protocol": "TCP"}
            for i in range(number)
        ]

    return grow


def _labels(field: str) -> Grow:
    def grow(pod: Json, number: int) -> None:
        pod["metadata"].setdefault(field, {}).update({f"label-{i}": "x" for i in range(number)})

    return grow


def _volumes(make: Callable[[int], Json]) -> Grow:
    def grow(pod: Json, number: int) -> None:
        pod["spec"]["volumes"] = [{"name": f"v{i}", **make(i)} for i in range(number)]

    return grow


def _ephemeral(i: int) -> Json:
    return {"ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": "fast"}}}}


def _gates(pod: Json, number: int) -> None:
    pod["spec"]["schedulingGates"] = [{"name": f"example.com/g{i}"} for i in range(number)]


def _owners(kind: str) -> Grow:
    def grow(pod: Json, number: int) -> None:
        pod["metadata"]["ownerReferences"] = [_owner(i, kind, controller=i == number - 1) for i in range(number)]

    return grow


def _owner(i: int, kind: str, controller: bool) -> Json:
    return {"apiVersion": "apps/v1", "kind": kind, "name": f"r{i}", "uid": f"u{i}", "controller": controller}


def _statuses(pod: Json, number: int) -> None:
    pod["spec"]["containers"] = [_container(i) for i in range(number)]
    resources = {"requests": {"cpu": "1"}}
    pod["status"]["containerStatuses"] = [
        {"name": f"c{i}", "allocatedResources": {"cpu": "1"}, "resources": resources} for i in range(number)
    ]


def _conditions(pod: Json, number: int) -> None:
    pod["status"]["conditions"] = [{"type": f"T{i}", "status": "True"} for i in range(number)]


def _claims(pod: Json, number: int) -> None:
    pod["spec"]["resourceClaims"] = [{"name": f"c{i}", "resourceClaimName": f"claim-{i}"} for i in range(number)]


def _text(put: Callable[[Json, str], None]) -> Grow:
    def grow(pod: Json, number: int) -> None:
        put(pod, "x" * number)

    return grow


def _label_value(pod: Json, text: str) -> None:
    pod["metadata"]["labels"]["app"] = text


def _selector_value(pod: Json, text: str) -> None:
    pod["spec"]["nodeSelector"] = {ZONE: text}


def _resource_name(pod: Json, text: str) -> None:
    resources = pod["spec"]["containers"][0].setdefault("resources", {})
    resources.setdefault("requests", {})[f"e.co/{text}"] = "1"


def _owner_kind(pod: Json, text: str) -> None:
    pod["metadata"]["ownerReferences"] = [_owner(0, text, controller=True)]


def _image(pod: Json, text: str) -> None:
    pod["spec"]["containers"][0]["image"] = text


def _toleration_value(pod: Json, text: str) -> None:
    pod["spec"]["tolerations"] = [{"key": "dedicated", "operator": "Equal", "value": text}]


def _annotation(key: str, repeat: str, end: str = "") -> Grow:
    """A value of so many bytes: one text again and again, and an end. Up to twice what an API server accepts is that
    length exactly, so that growing by factors meets it."""

    def grow(pod: Json, number: int) -> None:
        length = (ANNOTATION_BYTES if ANNOTATION_BYTES < number < 2 * ANNOTATION_BYTES else number) - len(end)
        text = (repeat * (length // len(repeat) + 1))[: max(length - len(key), 1)] + end
        pod["metadata"].setdefault("annotations", {})[key] = text
        resources = pod["spec"]["containers"][0].setdefault("resources", {})
        for each in ("requests", "limits"):  # these keys are read of pods with GPUs only
            resources.setdefault(each, {})[GPU] = "1"

    return grow


HARD, SOFT = "DoNotSchedule", "ScheduleAnyway"
HOSTNAME: Final = network.HOSTNAME.key
ZONE: Final = network.ZONE.key
GPU: Final = "nvidia.com/gpu"
PODS: Final[dict[str, Grow]] = {
    "hard spread, keys no node has": _spread("example.com/k{}", "w", HARD),
    "hard spread, one key": _spread(HOSTNAME, "w{}", HARD),
    "hard spread, zones": _spread(ZONE, "w{}", HARD),
    "hard spread, keys of nodes": _spread("node-label-{}", "w", HARD),
    "soft spread, keys no node has": _spread("example.com/k{}", "w", SOFT),
    "soft spread, one key": _spread(ZONE, "w{}", SOFT),
    "soft spread, hostnames": _spread(HOSTNAME, "w{}", SOFT),
    "soft spread, keys of nodes": _spread("node-label-{}", "w", SOFT),
    "node affinity terms, keys no node has": _node_terms("k{}"),
    "node affinity terms, one key": _node_terms(ZONE),
    "node affinity terms, numbers": _node_terms(HOSTNAME, operator="Gt"),
    "node affinity terms, keys of nodes": _node_terms("node-label-{}"),
    "node affinity requirements": _node_term(
        lambda n: {"matchExpressions": [_in(f"node-label-{i}", "x", operator="NotIn") for i in range(n)]}
    ),
    "node affinity values": _node_term(
        lambda n: {"matchExpressions": [_in(HOSTNAME, *(f"node-{i}" for i in range(n)))]}
    ),
    "node affinity names": _node_term(lambda n: {"matchFields": [_in("metadata.name", f"node-{i}") for i in range(n)]}),
    "node affinity preferences": _node_terms("node-label-{}", preferred=True),
    "node selector": _node_selector,
    "pod affinity terms": _pod_affinity("podAffinity", ZONE),
    "pod affinity terms, keys no node has": _pod_affinity("podAffinity", "k{}"),
    "pod anti-affinity terms": _pod_affinity("podAntiAffinity", HOSTNAME),
    "pod anti-affinity terms, keys of nodes": _pod_affinity("podAntiAffinity", "node-label-{}"),
    "pod anti-affinity against everybody": _pod_affinity(
        "podAntiAffinity", HOSTNAME, labelSelector=_everybody_but, namespaceSelector=lambda i: {}
    ),
    "pod anti-affinity, namespaces by labels": _pod_affinity(
        "podAntiAffinity", ZONE, namespaceSelector=lambda i: {"matchLabels": {f"k{i}": "v"}}
    ),
    "preferred pod affinity": _pod_affinity("podAffinity", ZONE, preferred=True),
    "preferred anti-affinity against everybody": _pod_affinity(
        "podAntiAffinity", HOSTNAME, preferred=True, labelSelector=_everybody_but, namespaceSelector=lambda i: {}
    ),
    "pod affinity requirements": _wide_selector("requirements"),
    "pod affinity values": _wide_selector("values"),
    "pod affinity namespaces": _wide_selector("namespaces"),
    "tolerations": _tolerations("k{}"),
    "tolerations of one key": _tolerations("dedicated"),
    "containers": _containers("containers"),
    "init containers": _containers("initContainers"),
    "sidecars": _containers("initContainers", restartPolicy="Always"),
    "sidecars with resources": _resources_of_containers,
    "ephemeral containers": _containers("ephemeralContainers"),
    "resources no node offers": _resources("e.co/r{}"),
    "resources in different amounts": _resources("e.co/r{}", amount="{}k"),
    "resources of nodes": _resources("example.com/device-{}"),
    "limits": _resources("e.co/r{}", "limits"),
    "host ports": _ports("0.0.0.0"),
    "host ports by address": _ports("10.0.{}.{}"),
    "labels": _labels("labels"),
    "annotations": _labels("annotations"),
    "volumes, claims": _volumes(lambda i: {"persistentVolumeClaim": {"claimName": f"claim-{i}"}}),
    "volumes, ephemeral": _volumes(_ephemeral),
    "volumes, disks": _volumes(lambda i: {"gcePersistentDisk": {"pdName": f"disk-{i}"}}),
    "volumes, drivers": _volumes(lambda i: {"csi": {"driver": f"csi-{i}.example.com"}}),
    "volumes, config maps": _volumes(lambda i: {"configMap": {"name": f"map-{i}"}}),
    "volumes, images": _volumes(lambda i: {"image": {"reference": f"image-{i}"}}),
    "scheduling gates": _gates,
    "owner references": _owners("ReplicaSet"),
    "owner references of long kinds": _owners("Kind" * 60),
    "container statuses": _statuses,
    "conditions": _conditions,
    "device claims": _claims,
    "bytes of a label": _text(_label_value),
    "bytes of a selector": _text(_selector_value),
    "bytes of a resource name": _text(_resource_name),
    "bytes of an owner's kind": _text(_owner_kind),
    "bytes of an image": _text(_image),
    "bytes of a toleration": _text(_toleration_value),
    "bytes of a quantity": _annotation(gpu.VRAM_REQUEST.key, "1", "Gi"),
    "bytes of a bandwidth": _annotation(gpu.MIN_NVLINK_BANDWIDTH.key, "1", "GB/s"),
    "bytes of a list": _annotation(numa.RESOURCES.key, "cpu,"),
    "bytes of a list of devices": _annotation(gpu.DEVICES.key, '{"device":"gpu-3","share":500},', "{}]"),
    "bytes of a tier": _annotation(tenant.POD_TIER.key, "gold "),
}
