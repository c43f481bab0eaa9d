"""The resources and host ports that a pod takes from its node. Pods of one template share one `Footprint` object."""

from typing import NamedTuple
from weakref import WeakValueDictionary

import msgspec

from kubenexus.api.core import Container, Pod
from kubenexus.api.resource_names import Amounts
from kubenexus.api.resources import Requests, footprint
from kubenexus.base.arrays import AMOUNT_CAP

ANY_ADDRESS = "0.0.0.0"


class Port(NamedTuple):
    """A port on the host. The wildcard address conflicts with every address."""

    protocol: str
    number: int
    address: str

    def clashes(self, other: "Port") -> bool:
        same = (self.protocol, self.number) == (other.protocol, other.number)
        return same and (self.address == other.address or ANY_ADDRESS in (self.address, other.address))


class Footprint(msgspec.Struct, frozen=True, weakref=True):
    """Amounts by resource name, and host ports. `pods` is not among the amounts: every pod counts as one."""

    amounts: Amounts = ()
    nonzero_cpu: int = 0
    nonzero_memory: int = 0
    ports: tuple[Port, ...] = ()


_shared: "WeakValueDictionary[Footprint, Footprint]" = WeakValueDictionary()


def interned(footprint: Footprint) -> Footprint:
    """Returns the shared object equal to this footprint. It lives as long as a pod refers to it."""
    return _shared.setdefault(footprint, footprint)


def footprint_from_requests(requests: Requests, ports: tuple[Port, ...]) -> Footprint:
    """Returns a footprint with amounts capped, so that the sum of two stays within int64; a capped pod fits no node.
    The result is not interned: the caller keeps it for all pods of a class."""
    cpu, memory = min(requests.nonzero_cpu, AMOUNT_CAP), min(requests.nonzero_memory, AMOUNT_CAP)
    return Footprint(_capped(requests.amounts), cpu, memory, ports)


def footprint_of(pod: Pod) -> Footprint:
    """Returns the footprint of a pod where it runs, in-place resize included. Raises Malformed, naming the field."""
    return interned(footprint_from_requests(footprint(pod), host_ports(pod)))


def host_ports(pod: Pod) -> tuple[Port, ...]:
    """Returns the host ports of the containers that run as long as the pod does: sidecars and ordinary containers."""
    found: list[Port] = []
    for container in pod.spec.init_containers:
        if container.ports and container.restart_policy == "Always":
            found += _ports(container)
    for container in pod.spec.containers:
        if container.ports:
            found += _ports(container)
    return tuple(found)


def _ports(container: Container) -> list[Port]:
    return [
        Port(p.protocol or "TCP", p.host_port, p.host_ip or ANY_ADDRESS) for p in container.ports if p.host_port > 0
    ]


def _capped(amounts: Amounts) -> Amounts:
    for _, amount in amounts:
        if amount > AMOUNT_CAP:
            return tuple([(name, min(amount, AMOUNT_CAP)) for name, amount in amounts])
    return amounts
