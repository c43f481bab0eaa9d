"""The levels of the topology, from a node to a region: their names and node labels."""

from collections.abc import Iterable
from typing import Final

import msgspec

from kubenexus.api.keys import discovered, network
from kubenexus.api.keys.entry import KeyEntry, KeyKind


class TopologyLevel(msgspec.Struct, frozen=True, gc=False):
    """A level. A node's domain is the value of the first of `keys` that the node has as a label."""

    name: str
    keys: tuple[str, ...]


def _labels(entry: KeyEntry[str | None]) -> tuple[str, ...]:
    return tuple(each.key for each in entry.spellings if KeyKind.LABEL in each.kind)


HOSTNAME: Final = "hostname"
CLIQUE: Final = "clique"

# From the inside out; a configuration may name others (`topologyLevels`).
DEFAULT_LEVELS: Final[tuple[TopologyLevel, ...]] = (
    TopologyLevel(HOSTNAME, _labels(network.HOSTNAME)),
    TopologyLevel(CLIQUE, _labels(discovered.CLIQUE)),
    TopologyLevel("tor", _labels(network.SWITCH)),
    TopologyLevel("rack", _labels(network.RACK)),
    TopologyLevel("block", _labels(network.SPINE)),
    TopologyLevel("zone", _labels(network.ZONE)),
    TopologyLevel("region", _labels(network.REGION)),
)

# Other names in use.
_ALSO: Final = {
    "node": HOSTNAME,
    "host": HOSTNAME,
    "nvlink": CLIQUE,
    "switch": "tor",
    "spine": "block",
}


def topology_level(text: str, levels: Iterable[TopologyLevel] = DEFAULT_LEVELS) -> TopologyLevel:
    """Returns the level with a name (`rack`) or a node label (`topology.kubernetes.io/rack`). A label that belongs to
    no level is a level by itself."""
    known = tuple(levels)
    for name in (text, _ALSO.get(text, text)):
        for level in known:
            if name == level.name:
                return level
    # Only the named label counts, not its aliases.
    return next((level for level in known if level.keys == (text,)), TopologyLevel(text, (text,)))
