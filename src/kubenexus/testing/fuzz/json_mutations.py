"""Mutations that leave valid JSON: each has a name, under which the summary counts it.

A mutation changes a valid object in place. Targeted ones (a quantity, an operator, a name) find what random ones would
hardly hit; random ones at any depth find what was not foreseen. `size_mutations` makes objects large, and
`byte_mutations` produces invalid JSON.
"""

from collections.abc import Callable
from random import Random
from typing import Any, Final

from kubenexus.api.keys import network
from kubenexus.testing.fuzz.valid_objects import GPU, Json, container, node_name

Way = Callable[[Random, Json], None]

THINGS: Final[tuple[Any, ...]] = (
    True, 0, -1, 1.5, -1.5, 2**31, 2**63, 2**64, -(2**63) - 1, 10**40, 1e300, "", "x", "NaN", "-1", "1e400", "\0", "🤖",
    [], [None], [[]], {}, {"": None}, {"": ""}, {"a": {"b": []}}, "null", " ", "9" * 40,
)  # fmt: skip
NUMBERS: Final[tuple[Any, ...]] = (
    "NaN", "Infinity", "-Infinity", "-1", "-0", "-0.5", "1e400", "1e-400", "1e4294967296", "9" * 40, "0x10", "1_000",
    "٣", " 5 ", "5 m", "", "--5", "+5", ".", "m", "Pi", "1Zi", "0.0000000001", "1.5.5", "1e", "9223372036854775808",
    "4611686018427387904", 2**62, 2**63, 2**64, 10**30, -(10**30), -1, 1e300, 1e-300, 0.1, True, None, [], {},
)  # fmt: skip
RESOURCES: Final = (
    "", "/", "cpu/", "a/b/c", "kubernetes.io/", "requests.cpu", "hugepages-", "hugepages-2Mi", "attachable-volumes-x",
    "pods", "memory", "ephemeral-storage", "example.com/", "example.com/\0", "CPU", "خ/د", GPU, "nvidia.com/gpu.shared",
)  # fmt: skip
NAMES: Final = ("", " ", ".", "..", "a/b", "\n", "ü", "-", "A", "a" * 254, "{}", "*", "node-1", "\u202e", "%s", 5, None)
OPERATORS: Final = ("in", "IN", "", "Gt", "Lt", "NotIn", "Exists", "DoesNotExist", "Matches", "==", None, 5)
OPERANDS: Final[tuple[Any, ...]] = (
    [], ["a", "b"], ["-1"], ["٣"], ["9" * 30], [""], ["not a label!"], ["a"] * 50, None, "a", [None], ["x" * 64],
    {"0": "a"},
)  # fmt: skip


def wrong_type(rng: Random, thing: Json) -> None:
    """Replaces any value, at any depth, by one of another type."""
    held, key = _spot(rng, thing)
    held[key] = rng.choice(THINGS)


def null(rng: Random, thing: Json) -> None:
    held, key = _spot(rng, thing)
    held[key] = None


def missing(rng: Random, thing: Json) -> None:
    held, key = _spot(rng, thing)
    del held[key]


def missing_everything(rng: Random, thing: Json) -> None:
    for part in rng.sample(["metadata", "spec", "status"], rng.randrange(1, 4)):
        thing[part] = {}


def bad_quantity(rng: Random, thing: Json) -> None:
    """Sets an amount to NaN, a negative or huge number, or no number at all."""
    amounts = rng.choice(_amounts(rng, thing))
    amounts[rng.choice([*amounts, "cpu", "memory"])] = rng.choice(NUMBERS)


def weird_resource(rng: Random, thing: Json) -> None:
    rng.choice(_amounts(rng, thing))[rng.choice(RESOURCES)] = rng.choice(("1", "0", "5Gi", "1m", *NUMBERS))


def bad_name(rng: Random, thing: Json) -> None:
    thing["metadata"][rng.choice(("name", "namespace", "uid", "resourceVersion", "generation"))] = rng.choice(NAMES)


def bad_number(rng: Random, thing: Json) -> None:
    """Sets a number of fixed size too large or with the wrong sign."""
    number = rng.choice((-1, -(2**31), 2**31 - 1, 2**31, 2**63 - 1, -(2**63), 2**63, 10**30, 0, 0.5, "5"))
    if "containers" not in thing["spec"]:
        thing["status"]["images"] = [{"names": ["registry.example/app-1:v1"], "sizeBytes": number}]
    elif rng.random() < 0.4:
        thing["spec"]["priority"] = number
    elif rng.random() < 0.5:
        thing["spec"]["containers"] = [{**container(rng), "ports": [{"hostPort": number, "hostIP": "::"}]}]
    else:
        preference = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
        others = {"weight": rng.choice((1, 100, -(2**31))), "preference": {"matchExpressions": [_requirement(rng)]}}
        _prefer(thing, [{"weight": number, "preference": preference}, others])


def absurd_selector(rng: Random, thing: Json) -> None:
    """Sets unknown operators, wrong operands, empty terms and unknown fields."""
    terms: list[Any] = []
    for _ in range(rng.randrange(3)):
        field = rng.choice(({"key": "metadata.name", "operator": "In", "values": [node_name(rng)]}, _requirement(rng)))
        terms.append(rng.choice(({}, {"matchExpressions": [_requirement(rng)]}, {"matchFields": [field]}, None, [])))
    if rng.random() < 0.5:
        affinity = thing["spec"].setdefault("affinity", {}).setdefault("nodeAffinity", {})
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
    else:
        _prefer(thing, [{"weight": rng.choice((0, 1, 100)), "preference": term} for term in terms])


def absurd_neighbours(rng: Random, thing: Json) -> None:
    """Sets pod affinity or spreading with senseless keys, selectors and numbers."""
    selector = rng.choice(({}, None, {"matchLabels": {"app": "app-1"}}, {"matchExpressions": [_requirement(rng)]}))
    key = rng.choice(("zone", network.HOSTNAME.key, "", "not a key!", "nowhere", None))
    term = {"topologyKey": key, "labelSelector": selector, "namespaces": rng.choice(([], [""], None, ["team-1"] * 50))}
    skew = rng.choice((1, 0, -1, 2**31 - 1, 2**31))
    if rng.random() < 0.5:
        unless = rng.choice(("DoNotSchedule", "ScheduleAnyway", "", "?", None))
        spread = {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": unless, "labelSelector": selector}
        thing["spec"]["topologySpreadConstraints"] = [{**spread, "minDomains": rng.choice((None, -1, 2**31 - 1))}]
    else:
        wishes = {"weight": rng.choice((-(2**31), 0, 100, 2**31 - 1)), "podAffinityTerm": term}
        affinity = {
            "requiredDuringSchedulingIgnoredDuringExecution": rng.choice(([], [term], None)),
            "preferredDuringSchedulingIgnoredDuringExecution": [wishes],
        }
        thing["spec"].setdefault("affinity", {})[rng.choice(("podAffinity", "podAntiAffinity"))] = affinity


def contradiction(rng: Random, thing: Json) -> None:
    """Sets a status that contradicts the spec."""
    requests = {"cpu": rng.choice(("32", "1m", "-1", "x")), "memory": "1Gi"}
    reported = {"name": "c0", "allocatedResources": requests, "resources": {"requests": requests}}
    thing["status"] |= rng.choice(
        (
            {"phase": rng.choice(("Running", "Succeeded", "Unknown", "?"))},
            {"containerStatuses": [reported] * rng.randrange(3)},
            {"allocatedResources": requests, "resources": {"requests": requests}},
            {"conditions": [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]},
            {"nominatedNodeName": rng.choice(("nowhere", node_name(rng), 5))},
        )
    )
    thing["spec"]["resources"] = rng.choice((None, {"requests": requests}, {"requests": {GPU: "1"}}))


def elsewhere(rng: Random, thing: Json) -> None:
    """Binds the pod to a node that does not exist or has an impossible name."""
    thing["spec"]["nodeName"] = rng.choice(("nowhere", "", " ", "node-1\0", "x" * 300))


def odd_taint(rng: Random, thing: Json) -> None:
    """Sets a taint or a toleration that Kubernetes would reject."""
    odd = {
        part: rng.choice(("", "dedicated", "Exists", "NoSchedule", "?", "\0")) for part in ("key", "value", "effect")
    }
    where = "tolerations" if "containers" in thing["spec"] else "taints"
    thing["spec"][where] = [odd, {**odd, "operator": rng.choice(OPERATORS)}, rng.choice(({}, None, []))]


FOR_ANY: Final[tuple[Way, ...]] = (wrong_type, wrong_type, null, missing, missing_everything, bad_name)
FOR_PODS: Final[tuple[Way, ...]] = (
    *FOR_ANY, bad_quantity, weird_resource, bad_number, absurd_selector, absurd_neighbours,
    contradiction, elsewhere, odd_taint,
)  # fmt: skip
FOR_NODES: Final[tuple[Way, ...]] = (*FOR_ANY, bad_quantity, weird_resource, bad_number, odd_taint)


def _spot(rng: Random, thing: Json) -> tuple[Any, Any]:
    """Returns any place in the object, with equal probability."""
    found: list[tuple[Any, Any]] = []
    open_: list[Any] = [thing]
    while open_:
        held = open_.pop()
        for key, inner in held.items() if isinstance(held, dict) else enumerate(held):
            found.append((held, key))
            if isinstance(inner, dict | list):
                open_.append(inner)
    return rng.choice(found)


def _amounts(rng: Random, thing: Json) -> list[Json]:
    """Returns the resource lists of a node or a pod, and adds one if there is none."""
    if "containers" not in thing["spec"]:
        return [thing["status"]["allocatable"]]
    made = thing["spec"].setdefault(rng.choice(("overhead", "resources")), {})
    if made is thing["spec"].get("resources"):
        made = made.setdefault("requests", {"cpu": "1"})
    return [made, *(each["resources"]["requests"] for each in thing["spec"]["containers"])]


def _requirement(rng: Random) -> Json:
    key = rng.choice(("zone", "", "a/b/c", network.HOSTNAME.key, "metadata.name", "x" * 64, None))
    return {"key": key, "operator": rng.choice(OPERATORS), "values": rng.choice(OPERANDS)}


def _prefer(thing: Json, preferences: list[Any]) -> None:
    affinity = thing["spec"].setdefault("affinity", {}).setdefault("nodeAffinity", {})
    affinity["preferredDuringSchedulingIgnoredDuringExecution"] = preferences
