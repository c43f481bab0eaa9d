"""The pod class: all pods with equal signatures, filtered and scored together."""

from collections.abc import Callable, Hashable, Mapping
from typing import Any, TypeVar

from kubenexus.api.core import Pod, PodSpec, PodStatus
from kubenexus.api.resources import Demand, demand
from kubenexus.state.footprint import Footprint, Port, footprint_from_requests, footprint_of, host_ports

T = TypeVar("T")
_AT_REST = PodStatus()
_NOT_YET: Any = object()


class PodClass:
    """What a plugin gets of the pods of a class.

    `pod` has the signed fields alone (`framework.pod_signature`). So a plugin that forgot to declare a field gets its
    default in the first test, rather than another pod's value in production. `signed` is what plugins signed
    (`extension_points.Sign`), by plugin name. `pinned`: node names were left out of its affinity.
    """

    __slots__ = ("compiled", "demand", "footprint", "pinned", "pod", "ports", "signature", "signed")

    def __init__(
        self, signature: bytes, pod: Pod, *, pinned: bool = False, signed: Mapping[str, Any] | None = None
    ) -> None:
        self.signature = signature
        self.pod = pod
        self.pinned = pinned
        self.signed: Mapping[str, Any] = signed or {}
        self.demand: Demand = demand(pod)
        self.ports: tuple[Port, ...] = host_ports(pod)
        plain = pod.spec.resources is None and pod.status == _AT_REST  # then requests and footprint are equal
        self.footprint: Footprint = footprint_from_requests(self.demand, self.ports) if plain else footprint_of(pod)
        self.compiled: dict[Hashable, Any] = {}  # what plugins derived from the class so far (`cached`)

    @property
    def spec(self) -> PodSpec:
        return self.pod.spec

    def cached(self, key: Hashable, make: Callable[[], T]) -> T:
        """Returns what a plugin derives from the class, such as a parsed selector, made at the first call."""
        value: T = self.compiled.get(key, _NOT_YET)
        if value is _NOT_YET:
            value = self.compiled[key] = make()
        return value
