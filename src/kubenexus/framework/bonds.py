"""How members of a gang limit each other through a rule: what the planner has to know to place them all at once."""

import enum
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import msgspec
import numpy as np

from kubenexus.api.core import Pod
from kubenexus.framework.contract import broke
from kubenexus.framework.podclass import PodClass
from kubenexus.framework.points import Plugin
from kubenexus.state.nodes import NodeColumns

MOST_PAIRS = 20_000  # of a term and a member that are held against each other: 10 ms


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
        filter says about `peers`. If the gang is of one class they are one pod, that speaks for all; else they are all
        members: pods of one class are alike to those that run now, and may not be to a member once it runs. Nothing:
        not at all. A filter that looks beyond a row and lacks this method is asked again after each member."""


def bound(answer: Any, plugin: str) -> Sequence[Bond]:
    """What `bonds` may return. Raises PluginFailedError."""
    if not isinstance(answer, (list, tuple)) or not all(isinstance(each, Bond) and _fine(each) for each in answer):
        broke(plugin, "bonds", answer, "a list of Bonds")
    return answer


def _fine(bond: Bond) -> bool:
    if not isinstance(bond.tie, Tie) or not isinstance(bond.topology, str):
        return False
    if bond.tie is not Tie.EVEN:
        return True
    columns = (bond.counts, bond.present)
    return isinstance(bond.skew, int) and all(isinstance(each, np.ndarray) and each.ndim == 1 for each in columns)
