"""A cluster of a trace under one policy: jobs are decided and committed, or end."""

import hashlib
from collections.abc import Iterable

import numpy as np

from kubenexus.framework.decision import Decision
from kubenexus.framework.job import Job
from kubenexus.framework.profile import ProfilePlugins
from kubenexus.plan.decide import Planner, commit
from kubenexus.plan.demand_learner import DemandLearner
from kubenexus.plan.gang.reservation import Reservation
from kubenexus.sim.replay.objects import JobObjects, node_object
from kubenexus.sim.replay.traces.trace import WHOLE_GPU, TraceJob, TraceNode
from kubenexus.state.ledger import Ledger
from kubenexus.state.resources import PODS
from kubenexus.state.view import Nodes


class ReplayCluster:
    """A ledger with the nodes, and the planner of the policy."""

    def __init__(self, ledger: Ledger, plugins: ProfilePlugins) -> None:
        self.ledger = ledger
        self.planner, self.profile = Planner(plugins), plugins.profile.name
        self._objects = JobObjects(plugins.profile.name)
        self._demand = DemandLearner([plugins.profile.name] if plugins.reads_demand else [])
        self.decisions = 0
        self._digest = hashlib.blake2b(digest_size=8)
        # GPUs in thousandths: all, and those that pods held at the start.
        self.capacity = int(np.bitwise_count(ledger.nodes.devices.gpus).sum()) * WHOLE_GPU
        self.held = self.capacity - int(ledger.nodes.devices.share.sum()) + _held_without_names(ledger)

    def try_job(self, job: TraceJob, now: float) -> Decision:
        """Decides for the job and, if it can be placed, commits it."""
        return self.try_made(self.made(job), now)

    def made(self, job: TraceJob) -> Job:
        """Returns the job with its pods."""
        return self._objects.job(job)

    def try_made(self, made: Job, now: float, ahead: Reservation | None = None) -> Decision:
        """Decides for a job, which has to respect the reservation of another one, and commits it if it is placed."""
        decision = self._decide(made, now, ahead)
        if decision.placed:
            commit(decision, made, self.ledger, now)
            for placement in decision.placements:
                self._digest.update(f"{placement.pod} {placement.node}\n".encode())
        self._demand.decided(made, self.ledger, placed=decision.placed, placements=decision.placements)
        return decision

    def end(self, decision: Decision) -> None:
        """Removes the pods of a job that was placed."""
        for placement in decision.placements:
            self.ledger.remove_pod(placement.pod)

    @property
    def digest(self) -> str:
        """A fingerprint of all placements so far."""
        return self._digest.hexdigest()

    @property
    def nodes_in_use(self) -> int:
        """The number of nodes that run a pod."""
        return int((self.ledger.nodes.resources.used[PODS] > 0).sum())

    def _decide(self, job: Job, now: float, ahead: Reservation | None) -> Decision:
        self.decisions += 1
        return self.planner.decide(job, self.ledger.snapshot(), now, ahead)


def ledger_of(nodes: Iterable[TraceNode], *, shared: bool) -> Ledger:
    """Returns a ledger with the nodes of a trace. `shared`: pods may take parts of their GPUs."""
    ledger = Ledger()
    for node in nodes:
        ledger.upsert_node(node_object(node, shared=shared))
    ledger.read_devices()
    return ledger


def _held_without_names(ledger: Ledger) -> int:
    """Returns the GPUs, in thousandths, of pods that another scheduler placed: which ones is not known."""
    sets = Nodes(ledger.nodes).devices
    return sum(int(np.maximum(sets.unnamed(name), 0).sum()) for name in sets.resources) * WHOLE_GPU
