"""How members of a gang limit each other through a rule: what the planner has to know to place them all at once."""

import enum
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import msgspec
import numpy as np

from kubenexus.api.core import Pod
from kubenexus.framework.extension_points import Plugin
from kubenexus.framework.plugin_results import raise_contract_error
from kubenexus.framework.pod_class import PodClass
from kubenexus.state.nodes import NodeColumns

MOST_PAIRS = 20_000  # of a term and a member that are held against each other: 10 ms


class MemberRelation(enum.Enum):
    """What members of one class are to each other in a domain of the topology."""

    ANTI_AFFINITY = "at most one in a domain"
    AFFINITY = "all in one domain"
    SPREAD = "evenly over the domains"
    OTHER = "in a way that only asking again after each member can tell"


class MemberConstraint(msgspec.Struct, frozen=True, gc=False):
    """A tie over the values of a node label. For EVEN: how many pods each domain has (`counts`, by code), which domains
    take part (`present`), and by how much they may differ; `floor` says that the emptiest counts as empty."""

    tie: MemberRelation
    plugin: str = ""
    topology: str = ""
    counts: Any = None
    present: Any = None
    skew: int = 0
    floor: bool = False


@runtime_checkable
class ConstrainsMembers(Plugin, Protocol):
    def member_constraints(self, pod: PodClass, peers: Sequence[Pod], nodes: NodeColumns) -> Sequence[MemberConstraint]:
        """Called by the planner, for each class of a gang: how a pod of this class, once placed, changes what this
        filter says about `peers`. If the gang is of one class they are one pod, that speaks for all; else they are all
        members: pods of one class are alike to those that run now, and may not be to a member once it runs. Nothing:
        not at all. A filter that looks beyond a row and lacks this method is asked again after each member."""


def bound(answer: Any, plugin: str) -> Sequence[MemberConstraint]:
    """What `member_constraints` may return. Raises PluginError."""
    if not isinstance(answer, (list, tuple)) or not all(
        isinstance(each, MemberConstraint) and _fine(each) for each in answer
    ):
        raise_contract_error(plugin, "member_constraints", answer, "a list of MemberConstraint")
    return answer


def _fine(constraint: MemberConstraint) -> bool:
    if not isinstance(constraint.tie, MemberRelation) or not isinstance(constraint.topology, str):
        return False
    if constraint.tie is not MemberRelation.SPREAD:
        return True
    columns = (constraint.counts, constraint.present)
    return isinstance(constraint.skew, int) and all(isinstance(each, np.ndarray) and each.ndim == 1 for each in columns)
