"""`JobRebuilder`: builds jobs again that are outdated. `SchedulingQueue.pop` calls it; `queue.gangs.job_assembler` is
one."""

from typing import Protocol

from kubenexus.framework.job import Job


class JobRebuilder(Protocol):
    def is_outdated(self, job: Job) -> bool:
        """Whether the job must not be decided as it is."""

    def rebuild(self, job: Job) -> bool:
        """Replaces or removes an outdated job. Returns False, and does nothing, if that has to wait for the next turn
        of the loop."""
