"""Pod groups as victims of a pod that is in a pod group itself, as in kube-scheduler's workload-aware preemption."""

from collections.abc import Sequence

import numpy as np

from kubenexus.state.pods import PodRecord
from kubenexus.state.snapshot import Snapshot


def with_their_groups(victims: Sequence[PodRecord], snapshot: Snapshot) -> list[PodRecord]:
    """Returns the victims, and all other members of those of their groups that only go as a whole (`disruptionMode`
    all)."""
    columns = snapshot.nodes.pods.victims
    kinds = columns.kinds
    kinds.gangs.refresh(snapshot.pod_groups)
    slots = [columns.slot_of[each.uid] for each in victims if each.uid in columns.slot_of]
    gangs = np.unique(kinds.gang[columns.kind[slots]]) if slots else np.zeros(0, np.int64)
    whole = [code for code in gangs.tolist() if code >= 0 and kinds.gangs.together[code]]
    if not whole:
        return list(victims)
    found = {each.uid: each for each in victims}
    for slot in np.flatnonzero(np.isin(kinds.gang[columns.kind], whole)).tolist():
        record = columns.records[slot]
        if record is not None and not record.terminating:
            found.setdefault(record.uid, record)
    return list(found.values())
