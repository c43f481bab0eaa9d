"""The pods on nodes and the claims they use, and the volumes that are attached to nodes for them."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from kubenexus.state.pods import PodRecord
from kubenexus.state.volumes.csi_drivers import CsiDriverColumns
from kubenexus.state.volumes.csi_translation import AttachedVolume
from kubenexus.state.volumes.inline_disks import InlineDiskUse
from kubenexus.state.volumes.records import ClaimRecord

# A row, and the UID of the pod that must own the claim: its volume is ephemeral. None for an ordinary volume.
User = tuple[int, str | None]
Lookup = Callable[[str], ClaimRecord | None]
Resolve = Callable[[ClaimRecord], AttachedVolume | None]


class _Resolved(NamedTuple):
    """The volume that a driver attaches for a claim, None if there is none to count, and the claim's owner."""

    attachment: AttachedVolume | None
    owner: str

    def attached_for(self, user: User) -> AttachedVolume | None:
        """Returns what is attached for a user. The kubelet does not start a pod with an ephemeral volume whose claim
        belongs to another pod, so nothing is attached for it."""
        return self.attachment if user[1] is None or user[1] == self.owner else None


class ClaimUsers:
    """The users of each claim, as the number of pods by row: a pod is added and removed in time that does not depend on
    other users. A volume of a running pod that is invalid does not count; it is no reason to refuse another pod."""

    def __init__(self, lookup: Lookup, resolve: Resolve, drivers: CsiDriverColumns) -> None:
        self.disks = InlineDiskUse()
        self._lookup = lookup
        self._resolve = resolve
        self._drivers = drivers
        self._of: dict[str, dict[User, int]] = {}

    def using(self, claim: str) -> bool:
        """Returns whether a pod on a node has the claim as a volume. Claims of ephemeral volumes do not count."""
        return any(owner is None for _, owner in self._of.get(claim, ()))

    def claims(self) -> Iterable[str]:
        """Returns the claims in use."""
        return self._of

    def follow(self, record: PodRecord, row: int, sign: int) -> None:
        """Adds a pod on a row (`sign` +1) or removes it (-1)."""
        mounts = record.mounts
        if mounts is None:
            return
        for use in mounts.claims:
            key, user = f"{record.namespace}/{use.claim}", (row, record.uid if use.ephemeral else None)
            self._move(key, user, sign)
            self._mount(user, self._resolved(key), sign)
        for attachment in mounts.inline:
            self._drivers.mount(row, attachment, sign)
        for disk in mounts.disks:
            self.disks.charge(row, disk, sign)

    def recounted(self, keys: Iterable[str], change: Callable[[], None]) -> set[int]:
        """Calls `change`, after which these claims may resolve to other volumes, and counts the users of those that do
        again. Returns the rows of these users."""
        before = [(key, self._resolved(key)) for key in keys if key in self._of]
        change()
        rows = set()
        for key, old in before:
            new = self._resolved(key)
            if new == old:
                continue
            for user, pods in self._of[key].items():
                self._mount(user, old, -pods)
                self._mount(user, new, +pods)
                rows.add(user[0])
        return rows

    def _resolved(self, key: str) -> _Resolved:
        claim = self._lookup(key)
        return _Resolved(None, "") if claim is None else _Resolved(self._resolve(claim), claim.owner)

    def _mount(self, user: User, resolved: _Resolved, pods: int) -> None:
        attachment = resolved.attached_for(user)
        if attachment is not None:
            self._drivers.mount(user[0], attachment, pods)

    def _move(self, key: str, user: User, sign: int) -> None:
        users = self._of.setdefault(key, {})
        users[user] = users.get(user, 0) + sign
        if not users[user]:
            del users[user]
        if not users:
            del self._of[key]


def not_owned_by(claim: ClaimRecord, pod: str) -> str:
    """The message for an ephemeral volume whose claim belongs to another pod: the pod would get that pod's data."""
    return f"PVC {claim.key} was not created for pod {pod} (pod is not owner)"
