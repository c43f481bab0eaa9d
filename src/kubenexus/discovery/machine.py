"""`Machine`: what discovery finds of a machine. Plain data; numbers are `UNKNOWN` where they are not known."""

from collections.abc import Sequence

import msgspec

from kubenexus.api.devices.device import UNKNOWN
from kubenexus.api.devices.islands import components


class NumaNode(msgspec.Struct, frozen=True, gc=False):
    """A NUMA node with CPUs. `memory` has the huge pages, too; `huge_pages` has bytes by resource (`hugepages-2Mi`).
    `distances` are those to other NUMA nodes by their ids, as the firmware publishes them."""

    id: int
    cpus: tuple[int, ...] = ()
    memory: int = 0
    huge_pages: dict[str, int] = {}
    distances: dict[int, int] = {}


class Gpu(msgspec.Struct, frozen=True, gc=False):
    """A GPU or accelerator, at its PCI address. `bridges` are the PCI root and the bridges above it, the root first.

    `peers` are the addresses of GPUs that a link joins it with directly; `switched`: its links lead to a switch.
    `divided`: the card is split into MIG devices or partitions, which are offered in its place.
    """

    address: str
    vendor: str
    model: str = ""
    memory: int = UNKNOWN
    numa: int = UNKNOWN
    uuid: str = ""
    bridges: tuple[str, ...] = ()
    peers: tuple[str, ...] = ()
    switched: bool = False
    divided: bool = False


class RdmaPort(msgspec.Struct, frozen=True, gc=False):
    """A port that is up. `layer` is `infiniband` or `ethernet`, `rate` is in bits a second. `subnet` is the prefix of
    an InfiniBand subnet, "" for the default one."""

    device: str
    port: int
    layer: str
    rate: int
    subnet: str = ""


class Machine(msgspec.Struct, frozen=True, gc=False):
    """A machine. `gpus` are in the order in which their driver numbers them, `clique` is the NVLink domain among
    machines. `threads` is how many CPUs a core has, 0 if not known. `warnings` are about values that cannot be read."""

    numa_nodes: tuple[NumaNode, ...] = ()
    threads: int = 0
    gpus: tuple[Gpu, ...] = ()
    clique: str = ""
    ports: tuple[RdmaPort, ...] = ()
    warnings: tuple[str, ...] = ()


def islands(gpus: Sequence[Gpu]) -> list[tuple[int, ...]]:
    """Returns the numbers of the GPUs that links join, directly, through others or through switches; each group with
    two GPUs or more."""
    numbers = {gpu.address: number for number, gpu in enumerate(gpus)}
    edges = [(number, numbers[peer]) for number, gpu in enumerate(gpus) for peer in gpu.peers if peer in numbers]
    switched = [number for number, gpu in enumerate(gpus) if gpu.switched]
    edges += [(switched[0], number) for number in switched[1:]]
    groups: dict[int, list[int]] = {}
    for number, root in enumerate(components(len(gpus), edges)):
        groups.setdefault(root, []).append(number)
    return [tuple(group) for group in groups.values() if len(group) > 1]
