"""Reads the part of a KubeletConfiguration that decides about NUMA: no object of the API server contains it."""

import re
from typing import Any, Final

import msgspec

from kubenexus.api.keys.lists import CpuList
from kubenexus.api.numa.machine import NONE, POLICIES
from kubenexus.api.quantity import to_milli, to_units
from kubenexus.base.errors import Malformed

MAX_BYTES: Final = 64 << 10
_CPUS: Final = CpuList()


class KubeletSettings(msgspec.Struct, frozen=True, gc=False):
    """What the managers of a kubelet do. `reserved_number` is how many CPUs are reserved where their ids are not given;
    `reserved_memory` is by NUMA node and resource, in bytes."""

    known: bool = False
    policy: str = NONE
    pod_scope: bool = False
    static_cpus: bool = False
    static_memory: bool = False
    reserved_cpus: frozenset[int] = frozenset()
    reserved_number: int = 0
    reserved_memory: dict[tuple[int, str], int] = {}
    full_cores_only: bool = False
    spread_cpus: bool = False
    prefer_closest: bool = False


UNKNOWN_KUBELET: Final = KubeletSettings()


def read_kubelet_config(text: str) -> KubeletSettings:
    """Returns the settings of a KubeletConfiguration in YAML or JSON. Raises Malformed."""
    import yaml

    if len(text) > MAX_BYTES:
        raise Malformed(f"a kubelet's configuration has at most {MAX_BYTES} bytes")
    if re.search(r"(?m)(?:^|[\s\[{,:])[&*][A-Za-z0-9_]", text):
        raise Malformed("a kubelet's configuration has no anchors")
    try:
        found = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise Malformed(f"no YAML: {str(error)[:200]}") from None
    if not isinstance(found, dict) or found.get("kind", "KubeletConfiguration") != "KubeletConfiguration":
        raise Malformed("must be a KubeletConfiguration")
    policy = found.get("topologyManagerPolicy") or NONE
    if policy not in POLICIES:
        raise Malformed(f"must be one of {', '.join(POLICIES)}", field="topologyManagerPolicy")
    cpus = found.get("cpuManagerPolicyOptions")
    closest = found.get("topologyManagerPolicyOptions")
    return KubeletSettings(
        known=True,
        policy=policy,
        pod_scope=found.get("topologyManagerScope") == "pod",
        static_cpus=found.get("cpuManagerPolicy") == "static",
        static_memory=found.get("memoryManagerPolicy") == "Static",
        reserved_cpus=_reserved_cpus(found.get("reservedSystemCPUs")),
        reserved_number=_reserved_number(found.get("kubeReserved"), found.get("systemReserved")),
        reserved_memory=_reserved_memory(found.get("reservedMemory")),
        full_cores_only=_option(cpus, "full-pcpus-only"),
        spread_cpus=_option(cpus, "distribute-cpus-across-numa"),
        prefer_closest=_option(closest, "prefer-closest-numa-nodes"),
    )


def _option(options: Any, name: str) -> bool:
    return isinstance(options, dict) and str(options.get(name)).lower() == "true"


def _reserved_cpus(text: Any) -> frozenset[int]:
    if not text:
        return frozenset()
    try:
        return frozenset(_CPUS.parse(str(text)))
    except Malformed as error:
        raise error.within("reservedSystemCPUs") from None


def _reserved_number(*parts: Any) -> int:
    """Returns how many whole CPUs the kubelet keeps for itself and the system."""
    texts = [str(part["cpu"]) for part in parts if isinstance(part, dict) and part.get("cpu")]
    try:
        return -(-sum(max(to_milli(text), 0) for text in texts) // 1000)
    except Malformed as error:
        raise error.within("kubeReserved or systemReserved") from None


def _reserved_memory(listed: Any) -> dict[tuple[int, str], int]:
    found: dict[tuple[int, str], int] = {}
    for entry in listed[:64] if isinstance(listed, list) else ():
        limits = entry.get("limits") if isinstance(entry, dict) else None
        node = entry.get("numaNode") if isinstance(entry, dict) else None
        if not isinstance(node, int) or not isinstance(limits, dict):
            raise Malformed("must be entries with numaNode and limits", field="reservedMemory")
        for name, amount in list(limits.items())[:16]:
            try:
                found[node, str(name)] = max(to_units(str(amount)), 0)
            except Malformed as error:
                raise error.within("reservedMemory") from None
    return found
