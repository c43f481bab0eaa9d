"""What a pod takes from its node. Pods of one template share one footprint object."""

from typing import NamedTuple
from weakref import WeakValueDictionary

import msgspec

from kubenexus.api.core import Container, Pod
from kubenexus.api.resource_names import Amounts
from kubenexus.api.resources import Requests, footprint
from kubenexus.base.arrays import AMOUNT_CAP

ANY_ADDRESS = "0.0.0.0"


class Port(NamedTuple):
    """A port on the host. The wildcard address clashes with every address."""

    protocol: str
    number: int
    address: str

    def clashes(self, other: "Port") -> bool:
        same = (self.protocol, self.number) == (other.protocol, other.number)
        return same and (self.address == other.address or ANY_ADDRESS in (self.address, other.address))


class Footprint(msgspec.Struct, frozen=True, weakref=True):
    """Amounts by resource name (`pods` is not among them: every pod counts as one), and the ports on the host."""

    amounts: Amounts = ()
    nonzero_cpu: int = 0
    nonzero_memory: int = 0
    ports: tuple[Port, ...] = ()


_shared: "WeakValueDictionary[Footprint, Footprint]" = WeakValueDictionary()


def interned(footprint: Footprint) -> Footprint:
    """The one object that stands for this footprint, alive as long as some pod has it."""
    return _shared.setdefault(footprint, footprint)


def footprint_from_requests(requests: Requests, ports: tuple[Port, ...]) -> Footprint:
    """Amounts are capped so that sums of two stay within int64; such a pod fits nowhere anyway. Not shared: for whoever
    keeps it for all pods of a kind."""
    cpu, memory = min(requests.nonzero_cpu, AMOUNT_CAP), min(requests.nonzero_memory, AMOUNT_CAP)
    return Footprint(_capped(requests.amounts), cpu, memory, ports)


def footprint_of(pod: Pod) -> Footprint:
    """What this pod takes where it runs, resize in place included. Raises Malformed, naming the field."""
    return interned(footprint_from_requests(footprint(pod), host_ports(pod)))


def host_ports(pod: Pod) -> tuple[Port, ...]:
    """Ports of the containers that run as long as the pod does: sidecars and ordinary containers."""
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
