"""Nodes and pods as the API server would send them: JSON with all that a real object carries and we do not read.

Sizes are those of kube-scheduler's own benchmark (scheduler_perf): nodes with 4 cpu, 32 Gi and room for 110 pods, pods
that ask for 100m and 500 Mi. Around them stands what admission, controllers and kubelet add in a cluster: owners,
managed fields, the token volume, the two default tolerations, the status.

A text is made once for each template; what differs between its pods is replaced in the text, as fast as a benchmark
needs it that decodes a hundred thousand of them.
"""

import functools
import json
from typing import Any, Final, NamedTuple

from bench.wishes import WISHES

ZONES: Final = ("zone-1", "zone-2", "zone-3")
KINDS: Final = ("m5.xlarge", "m6i.xlarge", "m7i.xlarge", "r6i.xlarge")
_POOL: Final = 60  # different images in the cluster
_WHEN: Final = "2026-11-15T08:00:00Z"


class Template(NamedTuple):
    """What pods of one workload have in common. Equal templates are one pod class."""

    cpu: int = 100  # milli
    memory: int = 500 << 10  # Ki
    zones: tuple[str, ...] = ()  # required; with it comes one preferred term
    image: int = 0
    wish: str = ""  # one of bench.wishes


class NodeKind(NamedTuple):
    """How a cluster's nodes are: every so-many-th tainted or cordoned (0: none), and how many images each has."""

    tainted_every: int = 0
    cordoned_every: int = 0
    images: int = 0


PLAIN_NODES: Final = NodeKind()


def pod(template: Template, number: int, node: str = "") -> str:
    """The text of a pod; with a node, of one that runs there."""
    text = _pod_text(template, bool(node))
    text = text.replace("@NUMBER@", str(number)).replace("@UID@", f"{number:08x}-5eed-4bad-8cab-{number:012x}")
    return text.replace("@NODE@", node) if node else text


def pod_page(pods: list[str]) -> bytes:
    """A page of a list, as the API server answers."""
    return _page("PodList", pods)


def node(number: int, kind: NodeKind = PLAIN_NODES, beat: int = 0, generation: int = 0) -> str:
    """The text of a node. A later `beat` is the same node some seconds later; another `generation` of it changed."""
    return json.dumps(_node(number, kind, beat, generation), separators=(",", ":"))


def node_page(nodes: list[str]) -> bytes:
    return _page("NodeList", nodes)


def node_name(number: int) -> str:
    return f"worker-{number:05d}"


def image_name(number: int) -> str:
    return f"registry.example.com/team-{number % 7}/service-{number:02d}:1.{number}.0"


def forget_texts() -> None:
    """Drop the texts that templates were made into, so that they do not count as memory of the cluster."""
    _pod_text.cache_clear()


def _page(kind: str, items: list[str]) -> bytes:
    head = f'{{"kind":"{kind}","apiVersion":"v1","metadata":{{"resourceVersion":"1234567"}},"items":['
    return (head + ",".join(items) + "]}").encode()


@functools.lru_cache(maxsize=512)
def _pod_text(template: Template, bound: bool) -> str:
    workload = f"app-{template.cpu}-{template.memory}-{template.image}"
    data = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": _pod_metadata(workload),
        "spec": _pod_spec(template, bound),
        "status": _running(template) if bound else {"phase": "Pending", "qosClass": "Guaranteed"},
    }
    if template.wish:
        WISHES[template.wish](data)
    return json.dumps(data, separators=(",", ":"))


def _pod_metadata(workload: str) -> dict[str, Any]:
    variables = ("LOG_LEVEL", "POD_IP", "ZONE")
    owned: dict[str, Any] = {f'k:{{"name":"{name}"}}': {".": {}, "f:value": {}} for name in variables}
    managed = {"f:metadata": {"f:labels": {"f:app": {}}}, "f:spec": {"f:containers": {'k:{"name":"main"}': owned}}}
    return {
        "name": f"{workload}-@NUMBER@",
        "generateName": f"{workload}-",
        "namespace": "default",
        "uid": "@UID@",
        "resourceVersion": "@NUMBER@",
        "creationTimestamp": _WHEN,
        "labels": {
            "app": workload,
            "batch.kubernetes.io/job-completion-index": "@NUMBER@",
            "batch.kubernetes.io/job-name": workload,
        },
        "annotations": {"prometheus.io/scrape": "true", "prometheus.io/port": "8080"},
        "ownerReferences": [
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "name": workload,
                "uid": "0b8f1d0e-0000-4000-8000-000000000001",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
        "managedFields": [
            {
                "manager": "kube-controller-manager",
                "operation": "Update",
                "apiVersion": "v1",
                "time": _WHEN,
                "fieldsType": "FieldsV1",
                "fieldsV1": managed,
            }
        ],
    }


def _amounts(template: Template) -> dict[str, Any]:
    amounts = {"cpu": f"{template.cpu}m", "memory": f"{template.memory}Ki"}
    return {"requests": amounts, "limits": amounts}


def _pod_spec(template: Template, bound: bool) -> dict[str, Any]:
    not_there = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    probe = {"httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"}, "timeoutSeconds": 1, "periodSeconds": 10}
    token = [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
    ]
    spec: dict[str, Any] = {
        "volumes": [{"name": "kube-api-access-x7k2p", "projected": {"sources": token, "defaultMode": 420}}],
        "containers": [
            {
                "name": "main",
                "image": image_name(template.image),
                "command": ["/bin/serve"],
                "args": ["--listen=:8080", "--log-format=json"],
                "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
                "env": [
                    {"name": "LOG_LEVEL", "value": "info"},
                    {"name": "POD_IP", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}}},
                ],
                "resources": _amounts(template),
                "volumeMounts": [
                    {
                        "name": "kube-api-access-x7k2p",
                        "readOnly": True,
                        "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
                    }
                ],
                "livenessProbe": probe,
                "readinessProbe": probe,
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
                "imagePullPolicy": "IfNotPresent",
            }
        ],
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "serviceAccountName": "default",
        "serviceAccount": "default",
        "securityContext": {},
        "schedulerName": "kubenexus-scheduler",
        "tolerations": [
            {"key": "node.kubernetes.io/not-ready", **not_there},
            {"key": "node.kubernetes.io/unreachable", **not_there},
        ],
        "priority": 0,
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
    }
    if template.zones:
        spec["affinity"] = {"nodeAffinity": _affinity(template.zones)}
    if bound:
        spec["nodeName"] = "@NODE@"
    return spec


def _affinity(zones: tuple[str, ...]) -> dict[str, Any]:
    zone = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": list(zones)}
    newer = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": list(KINDS[1:3])}
    return {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [zone]}]},
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 50, "preference": {"matchExpressions": [newer]}}
        ],
    }


def _running(template: Template) -> dict[str, Any]:
    kinds = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    return {
        "phase": "Running",
        "conditions": [
            {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": _WHEN} for kind in kinds
        ],
        "hostIP": "10.0.1.17",
        "podIP": "10.128.3.41",
        "podIPs": [{"ip": "10.128.3.41"}],
        "startTime": _WHEN,
        "containerStatuses": [
            {
                "name": "main",
                "state": {"running": {"startedAt": _WHEN}},
                "lastState": {},
                "ready": True,
                "restartCount": 0,
                "image": image_name(template.image),
                "imageID": "registry.example.com/service@sha256:" + "5e" * 32,
                "containerID": "containerd://" + "c0" * 32,
                "started": True,
                "allocatedResources": _amounts(template)["requests"],
                "resources": _amounts(template),
            }
        ],
        "qosClass": "Guaranteed",
    }


def _node(number: int, kind: NodeKind, beat: int, generation: int) -> dict[str, Any]:
    name, zone, machine = node_name(number), ZONES[number % len(ZONES)], KINDS[number % len(KINDS)]
    size = {"cpu": "4", "memory": "32Gi", "pods": "110", "ephemeral-storage": "200Gi"}
    beaten = f"2026-11-15T08:{beat // 60 % 60:02d}:{beat % 60:02d}Z"
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": f"{number:08x}-0de5-4bad-8cab-{number:012x}",
            "resourceVersion": str(1000 + beat),
            "creationTimestamp": _WHEN,
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/os": "linux",
                "node.kubernetes.io/instance-type": machine,
                "topology.kubernetes.io/region": "region-1",
                "topology.kubernetes.io/zone": zone,
                **({"example.com/generation": str(generation)} if generation else {}),
            },
            "annotations": {"node.alpha.kubernetes.io/ttl": "0"},
        },
        "spec": {"podCIDR": f"10.{number // 256 % 256}.{number % 256}.0/24", **_marks(number, kind)},
        "status": {
            "capacity": size,
            "allocatable": size,
            "conditions": [
                {"type": "Ready", "status": "True", "lastHeartbeatTime": beaten, "reason": "KubeletReady"},
                {"type": "MemoryPressure", "status": "False", "lastHeartbeatTime": beaten},
            ],
            "addresses": [{"type": "Hostname", "address": name}],
            "nodeInfo": {"kubeletVersion": "v1.37.1", "operatingSystem": "linux", "architecture": "amd64"},
            "images": [_image(number + 3 * i) for i in range(kind.images)],
        },
    }


def _marks(number: int, kind: NodeKind) -> dict[str, Any]:
    """Taints and cordons, spread over the zones."""
    if kind.tainted_every and number % kind.tainted_every == 3:
        return {"taints": [{"key": "dedicated", "value": "batch", "effect": "NoSchedule"}]}
    if kind.cordoned_every and number % kind.cordoned_every == 5:
        cordon = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
        return {"unschedulable": True, "taints": [cordon]}
    return {}


def _image(number: int) -> dict[str, Any]:
    number %= _POOL
    digest = f"registry.example.com/team-{number % 7}/service-{number:02d}@sha256:" + f"{number:02x}" * 32
    return {"names": [digest, image_name(number)], "sizeBytes": (40 + 10 * number) << 20}
