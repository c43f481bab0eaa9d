"""Decisions with reserved capacity: owners use theirs, all other jobs see it as used.

A job's own entries are lifted from the columns while it is decided, in a transaction that is rolled back. Its pods go
to the nodes of these entries if they all fit there, else to any node. A job that fits nowhere, and whose priority
allows it, is tried once more on capacity of others.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import msgspec
import numpy as np

from kubenexus.api.core import Pod
from kubenexus.base.errors import Malformed
from kubenexus.framework.decision import Decision
from kubenexus.framework.job import Job
from kubenexus.plan.gang.replacement import replacements
from kubenexus.state.footprint import footprint_of
from kubenexus.state.reservations.table import ReservationTable, ReservedCapacity
from kubenexus.state.snapshot import Snapshot

FEW: Final = 16  # entries
Decide = Callable[[Any], Decision]  # from a mask over the rows, or None for all rows, to a decision


def own_capacity(job: Job, table: ReservationTable) -> list[ReservedCapacity]:
    """Returns the entries that this job may use."""
    return table.owned_by(job.namespace, _group(job), job.pods)


def own_reservations(job: Job, table: ReservationTable) -> tuple[str, ...]:
    """Returns the keys of the reservations that this job may use: a refusal of other jobs does not apply to it."""
    return table.keys_owned_by(job.namespace, _group(job), job.pods) if table else ()


def _group(job: Job) -> str:
    """Returns the name of the job's gang as users write it, "" if it is a single pod."""
    return job.display_name.removeprefix(f"{job.namespace}/") if job.is_gang else ""


def decide_with_own(
    own: Sequence[ReservedCapacity], job: Job, snapshot: Snapshot, decide: Decide, within: Any = None
) -> Decision:
    """Returns the decision of a job that may use these entries, on their nodes if that is possible. Of many entries a
    single pod is tried on FEW first: to lift all takes 17 us for each."""
    if len(own) > FEW and len(job.pods) == 1:
        decision = _on_their_nodes(_first_fitting(own, job.pods[0]), snapshot, decide, within)
        if decision is not None and decision.placed:
            return decision
    with lifted(own, snapshot) as rows:
        decision = decide(_mask(rows, snapshot, within))
        if len(decision.placements) == len(job.pods):
            return decision
        anywhere = decide(within)  # also if only some members of an elastic gang fit there
        return anywhere if len(anywhere.placements) > len(decision.placements) or not decision.placed else decision


def _on_their_nodes(
    entries: Sequence[ReservedCapacity], snapshot: Snapshot, decide: Decide, within: Any
) -> Decision | None:
    if not entries:
        return None
    with lifted(entries, snapshot) as rows:
        return decide(_mask(rows, snapshot, within))


def _mask(rows: list[int], snapshot: Snapshot, within: Any) -> Any:
    mask = np.zeros(snapshot.nodes.size, np.bool_)
    mask[rows] = True
    return mask if within is None else mask & within


def _first_fitting(own: Sequence[ReservedCapacity], pod: Pod) -> list[ReservedCapacity]:
    """Returns the first FEW entries that have all that the pod requests of what they keep. Scores choose among them."""
    try:
        wanted = dict(footprint_of(pod).amounts)
    except Malformed:
        return []
    found = list[ReservedCapacity]()
    for entry in own:
        kept = () if entry.record is None else entry.record.footprint.amounts
        common = [(left, wanted[name]) for name, left in kept if wanted.get(name)]
        if common and all([left >= asked for left, asked in common]):  # noqa: C419 - a list is faster
            found.append(entry)
            if len(found) == FEW:
                break
    return found


def decide_over_others(
    own: Sequence[ReservedCapacity], job: Job, snapshot: Snapshot, refused: Decision, decide: Decide, within: Any = None
) -> Decision:
    """Returns the decision with the capacity of others that the job's priority allows it to take; `refused` if that
    does not help either."""
    others = [entry for entry in snapshot.reservations.yielding_to(job.priority) if entry not in own]
    if not others:
        return refused
    with lifted([*own, *others], snapshot):
        decision = decide(within)
        return decision if decision.placed else refused


def without_covered(decision: Decision, own: Sequence[ReservedCapacity]) -> Decision:
    """Returns the decision with only the placements that take more than the job's own entries have on their nodes."""
    held: dict[str, dict[str, int]] = {}
    for entry in own:
        amounts = held.setdefault(entry.node, {})
        for name, amount in (*entry.left().items(), ("pods", 1)):
            amounts[name] = amounts.get(name, 0) + amount
    covered = replacements(decision.placements, held)
    left = tuple([each for each in decision.placements if each.uid not in covered])
    return msgspec.structs.replace(decision, placements=left)


@contextmanager
def lifted(entries: Sequence[ReservedCapacity], snapshot: Snapshot) -> Iterator[list[int]]:
    """Counts these entries no longer, until the end of the block. Yields their rows."""
    with snapshot.attempt() as transaction:
        rows = []
        for entry in entries:
            if entry.record is not None:
                rows.append(snapshot.nodes.row_of[entry.node])
                transaction.lift_reserved(rows[-1], entry.record.footprint)
        yield rows
