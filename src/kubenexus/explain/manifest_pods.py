"""The pods that a manifest would have, without submitting it: what its controller would make of its templates.

Known kinds: Pod, Job, Deployment, ReplicaSet, StatefulSet, ReplicationController, JobSet, and the jobs of Kubeflow's
training operator (PyTorchJob, TFJob, MPIJob, ...). Other kinds that decisions read (PodGroup, Workload, ...) are passed
on as they are.
"""

import copy
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
import yaml

from kubenexus.api.codec import Unreadable, read_object
from kubenexus.api.core import Pod
from kubenexus.base.errors import KubeNexusError, truncated
from kubenexus.state.object_kinds import KINDS, kind_name

MAX_BYTES = 10 << 20  # of one manifest
MAX_PODS = 10_000
_SCALED = frozenset({"Deployment", "ReplicaSet", "StatefulSet", "ReplicationController"})
Tree = dict[str, Any]


class Manifest(msgspec.Struct):
    """The pods, and other objects with their kinds as `state.object_kinds` has them, as JSON."""

    pods: list[Pod]
    others: list[tuple[str, bytes]]


def read_manifest(text: str | bytes, source: str, namespace: str, priorities: Mapping[str, int]) -> Manifest:
    """Reads YAML or JSON with one or more documents. Objects without a namespace are in `namespace`; `priorities` are
    the values of PriorityClasses. Raises KubeNexusError, naming `source`."""
    if len(text) > MAX_BYTES:
        raise KubeNexusError(f"{source}: larger than {MAX_BYTES >> 20} MiB")
    try:
        documents = [each for each in yaml.safe_load_all(text) if each is not None]
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise KubeNexusError(f"{source}: not YAML: {' '.join(str(error).split())[:200]}") from None
    found = Manifest([], [])
    for document in _flat(documents, source):
        _take(found, document, source, namespace, priorities)
    return found


def _flat(documents: Iterable[Any], source: str) -> Iterator[Tree]:
    for document in documents:
        if not isinstance(document, dict) or not isinstance(document.get("kind"), str):
            raise KubeNexusError(f"{source}: expected Kubernetes objects with a kind")
        if document["kind"].endswith("List") and isinstance(document.get("items"), list):
            yield from _flat(document["items"], source)
        else:
            yield document


def _take(found: Manifest, document: Tree, source: str, namespace: str, priorities: Mapping[str, int]) -> None:
    kind, meta = document["kind"], _map(document, "metadata")
    subject = f"{source}: {truncated(kind)} {truncated(str(meta.get('name') or '(no name)'))}"
    meta = document["metadata"] = {"name": str(meta.get("name") or meta.get("generateName") or kind.lower()), **meta}
    meta.setdefault("namespace", namespace)
    group = str(document.get("apiVersion") or "").rpartition("/")[0]
    try:
        trees = list(_pods(document, subject))
    except (TypeError, ValueError, AttributeError) as error:
        raise KubeNexusError(f"{subject}: {error}") from None
    if not trees and kind_name(kind, group) in KINDS:
        found.others.append((kind_name(kind, group), msgspec.json.encode(document)))
        return
    if not trees:
        raise KubeNexusError(f"{subject}: makes no pods, or its kind is not known")
    for tree in trees:
        found.pods.append(_pod(tree, subject, priorities))
    if len(found.pods) > MAX_PODS:
        raise KubeNexusError(f"{source}: more than {MAX_PODS} pods")


def _pods(document: Tree, subject: str) -> Iterator[Tree]:
    """Yields the pods that an object stands for."""
    kind, spec = document["kind"], _map(document, "spec")
    if kind == "Pod":
        yield document
    elif kind == "Job":
        yield from _job_pods(document, document["metadata"]["name"], {})
    elif kind in _SCALED:
        yield from _copies(document, _number(spec.get("replicas"), 1), spec.get("template"), {})
    elif kind == "JobSet":
        for each in spec.get("replicatedJobs") or ():
            for index in range(_number(each.get("replicas"), 1)):
                name = f"{document['metadata']['name']}-{each.get('name', '')}-{index}"
                labels = {
                    "jobset.sigs.k8s.io/jobset-name": document["metadata"]["name"],
                    "jobset.sigs.k8s.io/replicatedjob-name": str(each.get("name", "")),
                    "jobset.sigs.k8s.io/job-index": str(index),
                }
                job = {**document, "kind": "Job", "spec": _map(_map(each, "template"), "spec")}
                yield from _job_pods(job, name, labels, "batch/v1")
    else:
        yield from _trained(document, spec)


def _job_pods(document: Tree, name: str, labels: Tree, version: str = "") -> Iterator[Tree]:
    spec = _map(document, "spec")
    parallel = _number(spec.get("parallelism"), 1)
    completions = spec.get("completions")
    number = parallel if completions is None else min(parallel, _number(completions, 1))
    owner = {**document, "metadata": {**document["metadata"], "name": name}}
    if version:
        owner["apiVersion"] = version
    yield from _copies(owner, number, spec.get("template"), {**labels, "batch.kubernetes.io/job-name": name})


def _trained(document: Tree, spec: Tree) -> Iterator[Tree]:
    """The jobs of the training operator: `spec.pytorchReplicaSpecs` and its like."""
    for field, roles in spec.items():
        if not field.endswith("ReplicaSpecs") or not isinstance(roles, dict):
            continue
        for role, each in roles.items():
            name = document["metadata"]["name"]
            labels = {"training.kubeflow.org/job-name": name, "training.kubeflow.org/replica-type": role.lower()}
            yield from _copies(document, _number(each.get("replicas"), 1), each.get("template"), labels, role.lower())


def _copies(document: Tree, number: int, template: Any, labels: Tree, role: str = "") -> Iterator[Tree]:
    """Yields `number` pods of a template. Raises ValueError without one."""
    if not isinstance(template, dict):
        raise ValueError("has no pod template")
    meta = document["metadata"]
    owner = {
        "apiVersion": document.get("apiVersion", ""),
        "kind": document["kind"],
        "name": meta["name"],
        "uid": f"{meta['namespace']}/{meta['name']}",
        "controller": True,
    }
    inner = _map(template, "metadata")
    for index in range(min(number, MAX_PODS + 1)):
        name = "-".join(part for part in (meta["name"], role, str(index)) if part)
        yield {
            "metadata": {
                **inner,
                "name": name,
                "namespace": meta["namespace"],
                "labels": {**_map(inner, "labels"), **labels},
                "ownerReferences": [owner],
            },
            "spec": template.get("spec") or {},
        }


def _pod(tree: Tree, subject: str, priorities: Mapping[str, int]) -> Pod:
    """Returns the pod as the API server would store it: with requests from limits, and the priority of its class."""
    tree = copy.deepcopy(tree)
    spec = tree["spec"] = _map(tree, "spec")
    for container in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]:
        resources = _map(container, "resources")
        container["resources"] = {**resources, "requests": {**_map(resources, "limits"), **_map(resources, "requests")}}
    named = spec.get("priorityClassName") or ""
    if named and named not in priorities and not named.startswith("system-"):
        raise KubeNexusError(f"{subject}: the PriorityClass {truncated(str(named))} does not exist")
    spec.setdefault("priority", priorities.get(named, 0))
    spec.pop("nodeName", None)
    meta = tree["metadata"]
    meta["uid"] = f"{meta['namespace']}/{meta['name']} of the manifest"
    found = read_object(msgspec.json.encode(tree), Pod)
    if isinstance(found, Unreadable):
        raise KubeNexusError(f"{subject}: {found.error}")
    return found


def _map(tree: Any, field: str) -> Tree:
    """Returns a map in a tree, {} if it is not set. Raises TypeError if it is something else."""
    found = tree.get(field) if isinstance(tree, dict) else None
    if found is not None and not isinstance(found, dict):
        raise TypeError(f"{field}: expected a map")
    return found or {}


def _number(value: Any, default: int) -> int:
    if value is None:
        return default
    if not isinstance(value, int) or value < 0:
        raise ValueError(f"expected a number, not {truncated(str(value))}")
    return value
