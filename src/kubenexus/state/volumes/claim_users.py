"""The pods on nodes and the claims they use, and the volumes that are attached to nodes for them."""

from collections.abc import Callable, Iterable

from kubenexus.state.pods import PodRecord
from kubenexus.state.volumes.csi_drivers import CsiDriverColumns
from kubenexus.state.volumes.csi_translation import AttachedVolume
from kubenexus.state.volumes.inline_disks import InlineDiskUse
from kubenexus.state.volumes.pod_volumes import ClaimUse
from kubenexus.state.volumes.records import ClaimRecord

User = tuple[PodRecord, int, ClaimUse]
Lookup = Callable[[str], ClaimRecord | None]
Resolve = Callable[[ClaimRecord], AttachedVolume | None]


class ClaimUsers:
    """The users of each claim. `problems_by_row` holds messages by row: upstream cannot count a node's volumes if a pod
    there has an invalid volume. Where a driver has a limit, other pods with volumes are then rejected, too."""

    def __init__(self, lookup: Lookup, resolve: Resolve, drivers: CsiDriverColumns) -> None:
        self.disks = InlineDiskUse()
        self.problems_by_row: dict[int, dict[str, int]] = {}
        self._lookup = lookup
        self._resolve = resolve
        self._drivers = drivers
        self._of: dict[str, list[User]] = {}

    def using(self, claim: str) -> bool:
        """Returns whether a pod on a node has the claim as a volume. Claims of ephemeral volumes do not count."""
        return any(not use.ephemeral for _, _, use in self._of.get(claim, ()))

    def claims(self) -> Iterable[str]:
        """Returns the claims in use."""
        return self._of

    def follow(self, record: PodRecord, row: int, sign: int) -> None:
        """Adds a pod on a row (`sign` +1) or removes it (-1)."""
        mounts = record.mounts
        if mounts is None:
            return
        for use in mounts.claims:
            user, key = (record, row, use), f"{record.namespace}/{use.claim}"
            if sign > 0:
                self._of.setdefault(key, []).append(user)
            else:
                self._forget(key, user)
            self._count(key, user, sign)
        for attachment in mounts.inline:
            self._drivers.mount(row, attachment, sign)
        for disk in mounts.disks:
            self.disks.charge(row, disk, sign)
        if mounts.problem:
            self._complain(row, mounts.problem, sign)

    def recounted(self, keys: Iterable[str], change: Callable[[], None]) -> set[int]:
        """Calls `change`, after which these claims may resolve to other volumes, and counts their users again. Returns
        the rows of these users."""
        users = [(key, user) for key in keys for user in self._of.get(key, ())]
        for key, user in users:
            self._count(key, user, -1)
        change()
        for key, user in users:
            self._count(key, user, +1)
        return {row for _, (_, row, _) in users}

    def _count(self, key: str, user: User, sign: int) -> None:
        record, row, use = user
        claim = self._lookup(key)
        if claim is None:
            return
        if use.ephemeral and claim.owner != record.uid:
            self._complain(row, not_owned_by(claim, record.key), sign)
            return
        attachment = self._resolve(claim)
        if attachment is not None:
            self._drivers.mount(row, attachment, sign)

    def _complain(self, row: int, problem: str, sign: int) -> None:
        here = self.problems_by_row.setdefault(row, {})
        here[problem] = here.get(problem, 0) + sign
        if not here[problem]:
            del here[problem]
        if not here:
            del self.problems_by_row[row]

    def _forget(self, key: str, user: User) -> None:
        users = self._of[key]
        del users[next(i for i, each in enumerate(users) if each[0] is user[0] and each[2] == user[2])]
        if not users:
            del self._of[key]


def not_owned_by(claim: ClaimRecord, pod: str) -> str:
    """The message for an ephemeral volume whose claim belongs to another pod: the pod would get that pod's data."""
    return f"PVC {claim.key} was not created for pod {pod} (pod is not owner)"
