"""Reads the queue and the gang registry: which job a pod waits in, and whether it still waits."""

from collections.abc import Mapping

from kubenexus.api.core import Pod
from kubenexus.api.gangs.job_key import gated_key
from kubenexus.queue.gangs.gang_jobs import GangMember
from kubenexus.queue.gangs.gang_registry import GangRegistry
from kubenexus.queue.queued_job import QueueState
from kubenexus.queue.scheduling_queue import SchedulingQueue
from kubenexus.state.pods import PodRecord, PodStage


class WaitingPods:
    """Changes nothing. `records` are the pods of the ledger: a member that was placed counts on its node there."""

    def __init__(self, queue: SchedulingQueue, registry: GangRegistry, records: Mapping[str, PodRecord]) -> None:
        self._queue, self._registry, self._records = queue, registry, records

    def __contains__(self, key: str) -> bool:
        """Whether the pod is a member of a gang, or queued by itself."""
        return key in self._registry.members or key in self._queue

    def latest_pod(self, pod: Pod) -> Pod:
        """Returns the newest version of the pod. A job keeps the one that it was built or last changed with."""
        return self._registry.latest(pod)

    def is_changing(self, gang: str) -> bool:
        """Whether members of a gang came, left or changed since its jobs were built."""
        return gang in self._registry.gangs and self._registry.changed.is_to_be_built(gang)

    def job_key(self, key: str) -> str:
        """Returns the key of the job that the pod waits in, or would wait in."""
        member = self._registry.members.get(key)
        if member is None or key in self._registry.gangs[member.claim.key].entries:
            return key
        return gated_key(member.claim.key) if member.pod.spec.scheduling_gates else member.claim.key

    def is_waiting(self, pod: Pod) -> bool:
        """Whether this very pod (by UID) is queued and not in flight."""
        member, state = self._registry.members.get(pod.key), self._queue.state(self.job_key(pod.key))
        if state in (QueueState.IN_FLIGHT, QueueState.GONE):
            return False
        if member is not None:
            return member.pod.metadata.uid == pod.metadata.uid and not self.node_of(pod.key, member)
        job = self._queue.job(pod.key)
        return job is not None and job.pods[0].metadata.uid == pod.metadata.uid

    def node_of(self, key: str, member: GangMember) -> str:
        """Returns the node that a member has, or was assumed on; "" for none."""
        record = self._records.get(key)
        if record is None or member.node:
            return member.node
        ours = record.uid == member.pod.metadata.uid and record.stage is not PodStage.NOMINATED
        return record.node if ours else ""
