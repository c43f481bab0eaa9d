"""How members of a gang limit each other through a rule: what the planner has to know to place them all at once."""

import enum
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import msgspec

from kubenexus.api.core import Pod
from kubenexus.framework.podclass import PodClass
from kubenexus.framework.points import Plugin
from kubenexus.state.nodes import NodeColumns


class Tie(enum.Enum):
    """What members of one class are to each other in a domain of the topology."""

    APART = "at most one in a domain"
    TOGETHER = "all in one domain"
    EVEN = "evenly over the domains"
    OTHER = "in a way that only asking again after each member can tell"


class Bond(msgspec.Struct, frozen=True, gc=False):
    """A tie over the values of a node label. For EVEN: how many pods each domain has (`counts`, by code), which domains
    take part (`present`), and by how much they may differ; `floor` says that the emptiest counts as empty."""

    tie: Tie
    plugin: str = ""
    topology: str = ""
    counts: Any = None
    present: Any = None
    skew: int = 0
    floor: bool = False


@runtime_checkable
class Bonding(Plugin, Protocol):
    def bonds(self, pod: PodClass, peers: Sequence[Pod], nodes: NodeColumns) -> Sequence[Bond]:
        """Called by the planner, for each class of a gang: how a pod of this class, once placed, changes what this
        filter says about `peers` (one for each class, its own among them). Nothing: not at all. A filter that looks
        beyond a row and lacks this method is asked again after each member."""
