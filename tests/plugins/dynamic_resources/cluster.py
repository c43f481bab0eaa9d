"""Small clusters with devices, as the API server has them, and what claims get there."""

from collections.abc import Mapping
from typing import Any

from kubenexus.api.codec import from_data
from kubenexus.api.devices.resource_claim import AllocationResult, DeviceClass, ResourceClaim, ResourceClaimSpec
from kubenexus.api.devices.resource_slice import ResourceSlice
from kubenexus.plugins.dynamic_resources.claim_requests import ClaimError, compile_claims
from kubenexus.plugins.dynamic_resources.outcomes import ClaimOutcomes
from kubenexus.state.ledger import Ledger
from kubenexus.testing.builders import a_node

DRIVER = "gpu.example.com"


def a_device(name: str, **fields: Any) -> dict[str, Any]:
    """A device; `attributes` are plain values."""
    given = fields.pop("attributes", {})
    kinds = {bool: "bool", int: "int", str: "string"}
    return {"name": name, "attributes": {key: {kinds[type(v)]: v} for key, v in given.items()}, **fields}


def a_slice(name: str, devices: list[dict[str, Any]], node: str = "n1", **spec: Any) -> ResourceSlice:
    where = {} if {"allNodes", "nodeSelector", "perDeviceNodeSelection"} & spec.keys() else {"nodeName": node}
    pool = {"name": spec.pop("pool", node), "generation": 1, "resourceSliceCount": 1, **spec.pop("pool_fields", {})}
    body = {"driver": DRIVER, "pool": pool, "devices": devices, **where, **spec}
    return from_data({"metadata": {"name": name, "uid": name}, "spec": body}, ResourceSlice)


def a_class(name: str = "gpu", *expressions: str, **spec: Any) -> DeviceClass:
    selectors = [{"cel": {"expression": each}} for each in expressions]
    return from_data({"metadata": {"name": name}, "spec": {"selectors": selectors, **spec}}, DeviceClass)


def a_request(name: str = "r", *expressions: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "exactly": exactly(*expressions, **fields)}


def exactly(*expressions: str, **fields: Any) -> dict[str, Any]:
    defaults = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    return {**defaults, "selectors": [{"cel": {"expression": each}} for each in expressions], **fields}


def a_spec(*requests: dict[str, Any], **devices: Any) -> ResourceClaimSpec:
    return from_data({"devices": {"requests": list(requests), **devices}}, ResourceClaimSpec)


def an_allocated_claim(name: str, *devices: str, pool: str = "n1", **result: Any) -> ResourceClaim:
    results = [{"request": "r", "driver": DRIVER, "pool": pool, "device": each, **result} for each in devices]
    status = {"allocation": {"devices": {"results": results}}}
    return from_data({"metadata": {"name": name, "namespace": "a", "uid": name}, "status": status}, ResourceClaim)


def a_cluster(*things: Any, nodes: Mapping[str, Mapping[str, str]] | None = None) -> Ledger:
    ledger = Ledger()
    for name, labels in (nodes or {"n1": {}}).items():
        ledger.upsert_node(a_node(name, labels=dict(labels)))
    if not any(isinstance(each, DeviceClass) for each in things):
        ledger.upsert_device_class(a_class())
    for each in things:
        if isinstance(each, ResourceSlice):
            ledger.upsert_resource_slice(each)
        elif isinstance(each, DeviceClass):
            ledger.upsert_device_class(each)
        else:
            ledger.upsert_resource_claim(each)
    return ledger


def allocated(ledger: Ledger, *specs: ResourceClaimSpec, node: str = "n1") -> list[AllocationResult] | str:
    """What claims with these specs get on a node, or why they get nothing."""
    columns = ledger.nodes
    try:
        claims = compile_claims([(f"a/c{i}", spec) for i, spec in enumerate(specs)], columns.claims.classes)
    except ClaimError as error:
        return str(error)
    return ClaimOutcomes(claims).allocations(columns.row_of[node], columns)


def devices(ledger: Ledger, *specs: ResourceClaimSpec, node: str = "n1") -> list[list[str]] | str:
    """The same by the names of the devices, with the request if it has alternatives."""
    given = allocated(ledger, *specs, node=node)
    if isinstance(given, str):
        return given
    return [
        [f"{r.request}={r.device}" if "/" in r.request else r.device for r in each.devices.results] for each in given
    ]
