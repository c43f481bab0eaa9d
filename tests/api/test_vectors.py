"""Every recorded vector of the functions that everything else stands on. A difference is printed with its input."""

from typing import Any

from kubenexus.api.codec import from_data
from kubenexus.api.core import NodeSelector, Pod
from kubenexus.api.node_selectors import parse_required
from kubenexus.api.quantity import Quantity, to_milli, to_units
from kubenexus.api.resources import footprint, pod_limits, pod_requests
from kubenexus.api.selectors import LabelSelector, compile_selector
from kubenexus.base.errors import Malformed
from tests.api.oracle import recorded


def test_quantities_are_read_and_printed_as_recorded() -> None:
    for vector in recorded("vectors-quantities"):
        assert quantity_facts(vector["in"], vector) == {key: vector[key] for key in vector if key != "in"}, vector


def quantity_facts(text: str, vector: dict[str, Any]) -> dict[str, Any]:
    try:
        quantity = Quantity.parse(text)
    except Malformed:
        return {"error": vector.get("error", "refused, though Kubernetes accepts it")}
    facts = {"canonical": quantity.canonical(), "sign": quantity.sign}
    if "overflow" in vector:  # upstream wraps around there; what we do instead has its own tests
        return facts | {key: vector[key] for key in ("value", "milli", "overflow")}
    assert (to_units(text), to_milli(text)) == (quantity.units(), quantity.milli())
    return facts | {"value": quantity.units(), "milli": quantity.milli()}


def test_requests_are_counted_as_recorded() -> None:
    for vector in recorded("vectors-requests"):
        pod = from_data(vector["pod"], Pod)
        counted = footprint(pod)
        assert dict(counted.amounts) == {name: n for name, n in vector["scheduler"].items() if n}, vector
        assert {"cpu": counted.nonzero_cpu, "memory": counted.nonzero_memory} == vector["nonZeroRequests"], vector


def test_requests_and_limits_print_as_recorded() -> None:
    for vector in recorded("vectors-requests"):
        pod = from_data(vector["pod"], Pod)
        assert printed(pod_requests(pod, status=True)) == vector["requests"], vector
        assert printed(pod_requests(pod, status=False)) == vector["specOnly"], vector
        assert printed(pod_limits(pod)) == vector["limits"], vector


def printed(amounts: dict[str, Quantity]) -> dict[str, str]:
    return {name: quantity.canonical() for name, quantity in amounts.items()}


def test_label_selectors_match_as_recorded() -> None:
    for vector in recorded("vectors-selectors"):
        assert selector_facts(vector) == {key: vector[key] for key in vector if key not in ("selector", "labels")}, (
            vector
        )


def selector_facts(vector: dict[str, Any]) -> dict[str, Any]:
    try:
        selector = compile_selector(
            None if vector["selector"] is None else from_data(vector["selector"], LabelSelector)
        )
    except Malformed as error:
        return {"error": True, "message": str(error)}
    facts = {"match": [selector.matches(labels) for labels in vector["labels"]]}
    return facts | ({"string": str(selector)} if str(selector) else {})


def test_node_selectors_match_as_recorded() -> None:
    for vector in recorded("vectors-nodeselectors"):
        terms = parse_required(from_data(vector["selector"], NodeSelector))
        for node, expected in zip(vector["nodes"], vector["match"], strict=True):
            matched = terms.matches(node["metadata"]["name"], node["metadata"].get("labels", {}))
            assert (matched or ("error" if terms.problem else False)) == expected, (vector["selector"], node)
