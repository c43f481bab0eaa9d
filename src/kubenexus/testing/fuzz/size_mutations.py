"""Mutations that make an object large: a megabyte of text in one place, or ten thousand entries.

The API server accepts objects of about 1.5 MB. The cost of one may grow only in proportion to its length; otherwise a
single pod stops the scheduler for all.
"""

from random import Random
from typing import Any, Final

from kubenexus.testing.fuzz.json_mutations import Way
from kubenexus.testing.fuzz.valid_objects import GPU, Json, container, node_name

MEGABYTE: Final = 10**6
MANY_ENTRIES: Final = 10_000


def megabyte_label(rng: Random, thing: Json) -> None:
    labels = thing["metadata"].setdefault(rng.choice(("labels", "annotations")), {})
    labels[rng.choice(("zone", "x" * MEGABYTE))] = rng.choice("x9") * MEGABYTE


def megabyte_name(rng: Random, thing: Json) -> None:
    thing["metadata"]["name"] = thing["metadata"]["name"] + "-" + "x" * MEGABYTE
    if rng.random() < 0.5 and "containers" in thing["spec"]:
        thing["spec"]["overhead"] = {"cpu": "none"}


def megabyte_quantity(rng: Random, thing: Json) -> None:
    text = rng.choice(("9", "0", "1e", ".", " ")) * (MEGABYTE // 2)
    for amounts in _requests(thing):
        amounts[rng.choice(("cpu", "memory", GPU))] = text


def megabyte_resource(rng: Random, thing: Json) -> None:
    for amounts in _requests(thing):
        amounts[rng.choice(("hugepages-", "example.com/", "kubernetes.io/")) + "x" * MEGABYTE] = "1"


def megabyte_selector(rng: Random, thing: Json) -> None:
    thing["spec"]["nodeSelector"] = {rng.choice(("zone", "x" * MEGABYTE)): "x" * MEGABYTE}


def many_labels(rng: Random, thing: Json) -> None:
    thing["metadata"]["labels"] = {f"label-{i}": "x" for i in range(MANY_ENTRIES)}


def many_resources(rng: Random, thing: Json) -> None:
    """A node gets 100 resources, since a resource that a node offers stays known; a pod requests 2,000."""
    if "containers" in thing["spec"]:
        thing["spec"]["containers"][0]["resources"]["requests"] = {f"example.com/r{i}": "1" for i in range(2000)}
    else:
        thing["status"]["allocatable"] |= {f"example.com/r{i}": "1" for i in range(100)}


def many_terms(rng: Random, thing: Json) -> None:
    key = rng.choice(("label-{}", "label-{}", "zone", f"own-{rng.randrange(10**9)}-{{}}"))
    terms = [{"matchExpressions": [_in(key.format(i), f"v{i}")]} for i in range(MANY_ENTRIES)]
    affinity = thing["spec"].setdefault("affinity", {}).setdefault("nodeAffinity", {})
    if rng.random() < 0.5:
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
    else:
        wishes = [{"weight": i % 100 + 1, "preference": term} for i, term in enumerate(terms)]
        affinity["preferredDuringSchedulingIgnoredDuringExecution"] = wishes


def many_requirements(rng: Random, thing: Json) -> None:
    """In one term: all on one label, or one with ten thousand values, or names of nodes."""
    term: Json = {"matchExpressions": [_in("zone", "a", "b") for _ in range(MANY_ENTRIES)]}
    if rng.random() < 0.6:
        term = {"matchExpressions": [_in("zone", *(f"v{i}" for i in range(MANY_ENTRIES)))]}
    if rng.random() < 0.3:
        term = {"matchFields": [_in("metadata.name", node_name(rng)) for _ in range(MANY_ENTRIES)]}
    required = {"nodeSelectorTerms": [term]}
    thing["spec"]["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def many_tolerations(rng: Random, thing: Json) -> None:
    thing["spec"]["tolerations"] = [{"key": f"k{i}", "operator": "Exists"} for i in range(MANY_ENTRIES)]


def many_taints(rng: Random, thing: Json) -> None:
    effect = rng.choice(("NoSchedule", "PreferNoSchedule", ""))
    thing["spec"]["taints"] = [{"key": f"k{i}", "value": "v", "effect": effect} for i in range(MANY_ENTRIES)]


def many_containers(rng: Random, thing: Json) -> None:
    """Ten thousand containers: with requests, without, or all with the same name."""
    one: Json = rng.choice(({}, {"name": "same"}, {"name": "c", "resources": {"requests": {"cpu": "1m"}}}))
    kind = rng.choice(("containers", "initContainers", "ephemeralContainers"))
    thing["spec"][kind] = [one] * (MANY_ENTRIES - 1) + [container(rng)]
    if rng.random() < 0.3:
        thing["status"]["containerStatuses"] = [{"name": f"c{i}"} for i in range(MANY_ENTRIES)]


def many_ports(rng: Random, thing: Json) -> None:
    ports = [{"hostPort": 1 + i, "protocol": rng.choice(("TCP", ""))} for i in range(MANY_ENTRIES)]
    thing["spec"]["containers"][0]["ports"] = ports


def many_images(rng: Random, thing: Json) -> None:
    thing["status"]["images"] = [{"names": [f"image-{i}"], "sizeBytes": 2**40} for i in range(MANY_ENTRIES)]
    thing["status"]["declaredFeatures"] = [f"Feature{i}" for i in range(MANY_ENTRIES)]


FOR_ANY: Final[tuple[Way, ...]] = (megabyte_label, megabyte_label, megabyte_name, many_labels)
FOR_PODS: Final[tuple[Way, ...]] = (
    *FOR_ANY, megabyte_quantity, megabyte_resource, megabyte_selector, many_resources, many_terms, many_requirements,
    many_tolerations, many_containers, many_ports,
)  # fmt: skip
FOR_NODES: Final[tuple[Way, ...]] = (
    *FOR_ANY, megabyte_quantity, megabyte_resource, many_resources, many_taints, many_images,
)  # fmt: skip


def _requests(thing: Json) -> list[Any]:
    if "containers" not in thing["spec"]:
        return [thing["status"]["allocatable"]]
    return [thing["spec"]["containers"][0]["resources"]["requests"]]


def _in(key: str, *values: str) -> Json:
    return {"key": key, "operator": "In", "values": list(values)}
