"""Small vectors for basic functions: quantities, requests, selectors."""

from collections.abc import Callable
from typing import Any

from kubenexus.api.codec import from_data
from kubenexus.api.core import NodeSelector, Pod
from kubenexus.api.node_selectors import parse_required
from kubenexus.api.quantity import Quantity
from kubenexus.api.resources import footprint, pod_limits, pod_requests
from kubenexus.api.selectors import LabelSelector, compile_selector
from kubenexus.base.errors import KubeNexusError, Malformed
from kubenexus.testing.oracle.comparison_counts import ComparisonCounts
from kubenexus.testing.oracle.files import VECTORS

REFUSED = "refused"


def compare_vector(vector: dict[str, Any], tally: ComparisonCounts) -> None:
    """Compares one element of a file of vectors. Raises if the kind is unknown or the vector incomplete."""
    kind = tally.kind.removeprefix(VECTORS)
    if kind not in _KINDS:
        raise KubeNexusError(f"unknown kind of vectors; known: {', '.join(_KINDS)}")
    _KINDS[kind](vector, tally)
    tally.compare("case", "judged", "judged")


def _quantity(vector: dict[str, Any], tally: ComparisonCounts) -> None:
    """Where Kubernetes overflows, its value and milli are meaningless; ours are capped instead."""
    try:
        ours = Quantity.parse(vector["in"])
        said = {"canonical": ours.canonical(), "sign": ours.sign, "value": ours.units(), "milli": ours.milli()}
    except Malformed:
        said = {}
    tally.compare("error", REFUSED if not said else "", REFUSED if "error" in vector else "")
    for aspect in ("canonical", "sign", "value", "milli"):
        if aspect not in vector:
            continue
        if "overflow" in vector and aspect in ("value", "milli"):
            tally.leave(aspect)
        else:
            tally.compare(aspect, said.get(aspect, REFUSED), vector[aspect])


def _requests(vector: dict[str, Any], tally: ComparisonCounts) -> None:
    pod = from_data(vector["pod"], Pod)
    counted = footprint(pod)
    nonzero = {"cpu": counted.nonzero_cpu, "memory": counted.nonzero_memory}
    tally.compare("scheduler", dict(counted.amounts), {name: n for name, n in vector["scheduler"].items() if n})
    tally.compare("nonZeroRequests", nonzero, vector["nonZeroRequests"])
    tally.compare("requests", _printed(pod_requests(pod, status=True)), vector["requests"])
    tally.compare("specOnly", _printed(pod_requests(pod, status=False)), vector["specOnly"])
    tally.compare("limits", _printed(pod_limits(pod)), vector["limits"])


def _printed(amounts: dict[str, Quantity]) -> dict[str, str]:
    return {name: quantity.canonical() for name, quantity in amounts.items()}


def _selector(vector: dict[str, Any], tally: ComparisonCounts) -> None:
    data = vector["selector"]
    try:
        selector, problem = compile_selector(None if data is None else from_data(data, LabelSelector)), ""
    except Malformed as error:
        selector, problem = None, str(error)
    tally.compare("error", problem, vector["message"] if "error" in vector else "")
    if "error" in vector:
        return
    tally.compare("string", REFUSED if selector is None else str(selector), vector.get("string", ""))
    for labels, expected in zip(vector["labels"], vector["match"], strict=True):
        tally.compare("match", REFUSED if selector is None else selector.matches(labels), expected, node=str(labels))


def _node_selector(vector: dict[str, Any], tally: ComparisonCounts) -> None:
    terms = parse_required(from_data(vector["selector"], NodeSelector))
    for node, expected in zip(vector["nodes"], vector["match"], strict=True):
        name, labels = node["metadata"]["name"], node["metadata"].get("labels", {})
        ours = terms.matches(name, labels) or ("error" if terms.problem else False)
        tally.compare("match", ours, expected, node=name)


_KINDS: dict[str, Callable[[dict[str, Any], ComparisonCounts], None]] = {
    "quantities": _quantity,
    "requests": _requests,
    "selectors": _selector,
    "nodeselectors": _node_selector,
}
