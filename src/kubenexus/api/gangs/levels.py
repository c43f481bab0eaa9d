"""The levels of the topology, from a node to a region: what they are called and which labels of nodes say them."""

from collections.abc import Iterable
from typing import Final

import msgspec

from kubenexus.api.keys import discovered, network
from kubenexus.api.keys.entry import Entry, Kind


class Level(msgspec.Struct, frozen=True, gc=False):
    """`keys` are labels of nodes; of those that a node has, the first one tells its domain."""

    name: str
    keys: tuple[str, ...]


def _labels(entry: Entry[str | None]) -> tuple[str, ...]:
    return tuple(each.key for each in entry.spellings if Kind.LABEL in each.kind)


HOSTNAME: Final = "hostname"
CLIQUE: Final = "clique"

# From the inside out; a configuration may name others (`topologyLevels`).
LEVELS: Final[tuple[Level, ...]] = (
    Level(HOSTNAME, ("kubernetes.io/hostname",)),
    Level(CLIQUE, _labels(discovered.CLIQUE)),
    Level("tor", _labels(network.SWITCH)),
    Level("rack", _labels(network.RACK)),
    Level("block", _labels(network.SPINE)),
    Level("zone", _labels(network.ZONE)),
    Level("region", _labels(network.REGION)),
)

# What people call them besides.
_ALSO: Final = {
    "node": HOSTNAME,
    "host": HOSTNAME,
    "nvlink": CLIQUE,
    "switch": "tor",
    "spine": "block",
}


def level_of(text: str, levels: Iterable[Level] = LEVELS) -> Level:
    """The level that a name (`rack`) or a label of nodes (`topology.kubernetes.io/rack`) means. A label that belongs to
    no level is one by itself."""
    known = tuple(levels)
    for name in (text, _ALSO.get(text, text)):
        for level in known:
            if name == level.name:
                return level
    # Only the label that was named counts: who asks for it does not mean its aliases, too.
    return next((level for level in known if level.keys == (text,)), Level(text, (text,)))
