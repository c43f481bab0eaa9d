"""A whole scheduler in one line: a ledger and a planner, every job decided and committed in the order given.

    assert run(nodes=[a_node("n1")], pods=[a_pod("web-0", cpu=1)]).placements == {"web-0": "n1"}

Pods that name a node run there already; the others are scheduled. Pods of the namespace `default` are called by their
name, others by `namespace/name`.
"""

from collections.abc import Iterable, Sequence

import msgspec

from kubenexus.api.core import DeviceClass, Node, Pod
from kubenexus.framework.decision import Decision, Diagnosis
from kubenexus.framework.job import Job
from kubenexus.framework.profile import Lineup, Profile
from kubenexus.framework.verdict import Code
from kubenexus.plan.decide import Planner, commit
from kubenexus.plugins import lineup
from kubenexus.state.ledger import Ledger


class Run(msgspec.Struct, frozen=True):
    """What became of the jobs, by name. `placements` are pods and their nodes, `refusals` jobs and the sentence."""

    ledger: Ledger
    planner: Planner
    decisions: dict[str, Decision]

    @property
    def placements(self) -> dict[str, str]:
        return {called(p.pod): p.node for decision in self.decisions.values() for p in decision.placements}

    @property
    def refusals(self) -> dict[str, str]:
        return {name: decision.sentence() for name, decision in self.decisions.items() if not decision.placed}

    def then(self, pods: Iterable[Pod | Job]) -> "Run":
        """Schedule more of them on what there is now."""
        return _schedule(pods, self.ledger, self.planner)


def run(
    nodes: Iterable[Node] = (),
    pods: Iterable[Pod | Job] = (),
    *,
    device_classes: Iterable[DeviceClass] = (),
    profile: Profile | Lineup | None = None,
) -> Run:
    """Schedule the pods and jobs that have no node yet, one after the other."""
    told = list(pods)
    ledger = a_ledger(nodes, [pod for pod in told if isinstance(pod, Pod)], device_classes)
    planner = Planner(profile if isinstance(profile, Lineup) else lineup(profile))
    return _schedule([each for each in told if isinstance(each, Job) or not each.spec.node_name], ledger, planner)


def a_ledger(
    nodes: Iterable[Node] = (), pods: Iterable[Pod] = (), device_classes: Iterable[DeviceClass] = ()
) -> Ledger:
    """A ledger that was told of these objects, in this order."""
    ledger = Ledger()
    for device_class in device_classes:
        ledger.device_class_seen(device_class)
    for node in nodes:
        ledger.node_seen(node)
    for pod in pods:
        ledger.pod_seen(pod)
    return ledger


def called(key: str) -> str:
    """What a pod or a job is called in a `Run`."""
    return key.removeprefix("default/")


def _schedule(jobs: Iterable[Pod | Job], ledger: Ledger, planner: Planner) -> Run:
    decisions: dict[str, Decision] = {}
    for each in jobs:
        job = Job.of(each) if isinstance(each, Pod) else each
        decision = _gated(job, planner.lineup, ledger) or planner.decide(job, ledger.snapshot(), now=0.0)
        if decision.placed:
            commit(decision, job, ledger, now=0.0)
        decisions[called(job.key)] = decision
    return Run(ledger, planner, decisions)


def _gated(job: Job, rules: Lineup, ledger: Ledger) -> Decision | None:
    """A job with a gated member never reaches the planner: the queue holds it back."""
    verdicts = [gate.gate(pod) for gate in rules.gates for pod in job.pods]
    said: Sequence[str] = [reason for verdict in verdicts if verdict is not None for reason in verdict.reasons]
    if not said:
        return None
    diagnosis = Diagnosis(nodes=ledger.nodes.count, message=", ".join(said))
    return Decision(job.key, Code.UNRESOLVABLE, ledger.generation, 0.0, diagnosis=diagnosis, error=", ".join(said))
