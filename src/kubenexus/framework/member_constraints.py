"""How members of a gang limit each other through a plugin, so that the planner can place them all at once."""

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

MAX_PAIRS = 20_000  # of an affinity term and a member, to be matched in one decision: 10 ms


class MemberRelation(enum.Enum):
    """How members of one class may share the domains of a topology label."""

    ANTI_AFFINITY = "at most one in a domain"
    AFFINITY = "all in one domain"
    SPREAD = "evenly over the domains"
    OTHER = "in a way that only asking again after each member can tell"


class MemberConstraint(msgspec.Struct, frozen=True, gc=False):
    """A relation of members over the domains of the node label `topology`.

    For SPREAD: `counts` has the pods of each domain by code, `present` the domains that take part, and `skew` by how
    many pods they may differ. With `floor` the emptiest domain counts as having no pods.
    """

    relation: MemberRelation
    plugin: str = ""
    topology: str = ""
    counts: Any = None
    present: Any = None
    skew: int = 0
    floor: bool = False


@runtime_checkable
class ConstrainsMembers(Plugin, Protocol):
    def member_constraints(self, pod: PodClass, peers: Sequence[Pod], nodes: NodeColumns) -> Sequence[MemberConstraint]:
        """Called by the gang planner for each class of a gang. Returns how a pod of this class, once placed, changes
        the results of this plugin's `filter` for `peers`; an empty list: not at all.

        If the gang has one class, `peers` is one pod of it; otherwise `peers` are all members. Pods of one class have
        the same results with the pods that run now, but not necessarily with a member once that runs. For a Stamped
        filter without this method the planner calls `filter` again after each member.
        """


def bound(answer: Any, plugin: str) -> Sequence[MemberConstraint]:
    """Returns a result of `member_constraints`; raises PluginError if it breaks the contract."""
    if not isinstance(answer, (list, tuple)) or not all(
        isinstance(each, MemberConstraint) and _fine(each) for each in answer
    ):
        raise_contract_error(plugin, "member_constraints", answer, "a list of MemberConstraint")
    return answer


def _fine(constraint: MemberConstraint) -> bool:
    if not isinstance(constraint.relation, MemberRelation) or not isinstance(constraint.topology, str):
        return False
    if constraint.relation is not MemberRelation.SPREAD:
        return True
    columns = (constraint.counts, constraint.present)
    return isinstance(constraint.skew, int) and all(isinstance(each, np.ndarray) and each.ndim == 1 for each in columns)
