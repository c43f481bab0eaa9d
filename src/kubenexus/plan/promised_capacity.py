"""Capacity that is promised to other jobs: nominated pods wait for it on their nodes."""

from kubenexus.framework.job import Job
from kubenexus.state.pods import PodRecord
from kubenexus.state.snapshot import Snapshot

PromisedPods = dict[int, list[PodRecord]]


def promised_to_others(job: Job, snapshot: Snapshot) -> PromisedPods:
    """Returns by row the nominated pods whose capacity no pod of this job may take."""
    waiting, rows, found = snapshot.nominees(), snapshot.nodes.row_of, PromisedPods()
    if not waiting:
        return found
    members = {pod.metadata.uid for pod in job.pods}
    least = min(pod.spec.priority for pod in job.pods)
    for node, nominees in waiting.items():
        others = [each for each in nominees.values() if each.priority >= least and each.uid not in members]
        if job.hold_keys:
            others = [each for each in others if each.key not in job.hold_keys]
        if others and node in rows:
            found[rows[node]] = others
    return found
