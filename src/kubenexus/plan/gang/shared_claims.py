"""Claims that several members of a gang share, such as those of its PodGroup.

The devices of such a claim are within reach of some nodes only. The first member that is placed decides which nodes
these are, and all others have to fit there, too.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import numpy as np

from kubenexus.api.core import Pod
from kubenexus.api.devices.pod_claims import claim_name
from kubenexus.base.arrays import BoolColumn, IntColumn
from kubenexus.plan.gang.member_classes import MemberClass
from kubenexus.state.claims.store import ClaimStore

MAX_REACHES = 8  # places for a shared claim that are tried in one domain
_MAX_CLAIMS = 16  # of one pod; with more it is refused


class SharingMembers(msgspec.Struct, gc=False):
    """The members that share one claim without devices, in the order of the gang. `capacity` is how many of them each
    row may take at most, by what is counted."""

    pods: list[Pod]
    capacity: Any

    def needed(self, minimum: int, size: int) -> int:
        """Returns how many of them have to be placed for a gang of `size` members."""
        return max(1, minimum - (size - len(self.pods)))


class Reach(msgspec.Struct, frozen=True, gc=False):
    """The rows that the devices of a claim are within reach of, and the UIDs of the members that share it."""

    rows: Any
    members: frozenset[str]

    def of(self, pod: Pod, within: Any) -> Any:
        """Returns the rows that a member may use."""
        return self.rows if pod.metadata.uid in self.members else within


def sharing_members(member_classes: Sequence[MemberClass], store: ClaimStore) -> SharingMembers | None:
    """Returns the members that share a claim without devices: of several such claims, that of most members. None if no
    two members share one."""
    users: dict[str, list[Pod]] = {}
    for pod in (pod for member_class in member_classes for pod in member_class.pods):
        for key in claim_keys(pod):
            stored = store.claims.get(key)
            if stored is not None and stored.claim.status.allocation is None:
                users.setdefault(key, []).append(pod)
    most = max(users.values(), key=len, default=[])
    return SharingMembers(most, _capacity(member_classes, most)) if len(most) > 1 else None


def claim_keys(pod: Pod) -> Iterable[str]:
    """Returns the keys of the claims of a pod that exist."""
    named = [claim_name(pod, each) for each in pod.spec.resource_claims[:_MAX_CLAIMS]]
    return dict.fromkeys(f"{pod.metadata.namespace}/{name}" for name in named if name)


def _capacity(member_classes: Sequence[MemberClass], sharing: list[Pod]) -> IntColumn:
    uids = {pod.metadata.uid for pod in sharing}
    counts = [sum(pod.metadata.uid in uids for pod in each.pods) for each in member_classes]
    parts = [np.minimum(each.capacity, number) for each, number in zip(member_classes, counts, strict=True)]
    total: IntColumn = np.sum(parts, axis=0)
    return total


def preferred_rows(sharing: SharingMembers, needed: int, within: Any) -> list[BoolColumn]:
    """Returns the rows for the first member: those that take all by themselves, and then the others."""
    allowed: BoolColumn = np.ones(len(sharing.capacity), np.bool_) if within is None else np.array(within, np.bool_)
    alone: BoolColumn = allowed & (sharing.capacity >= needed)
    return [alone, allowed & ~alone]
