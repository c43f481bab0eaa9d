"""Where the pods of a manifest would go, or those of a changed cluster: decided and committed job by job."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import msgspec

from kubenexus.api.codec import Unreadable, read_object
from kubenexus.api.core import Node, Pod
from kubenexus.api.gangs.declaration import TopologyRequest
from kubenexus.base.errors import KubeNexusError, Malformed
from kubenexus.config.gang_settings import GangSettings
from kubenexus.explain.cluster_dump import ClusterDump
from kubenexus.explain.counterfactual.node_changes import copies_of
from kubenexus.explain.explanation import gate_reason
from kubenexus.explain.gather_job import GatheredJob, job_of_pod
from kubenexus.explain.manifest_pods import Manifest
from kubenexus.explain.text_table import text_table
from kubenexus.plan.decide import Planner, commit
from kubenexus.state.object_kinds import KINDS, apply_object
from kubenexus.state.pods import is_finished, of_daemon_set

Profiles = Callable[[Pod], tuple[Planner, GangSettings]]
replace = msgspec.structs.replace


class NodeChanges(msgspec.Struct, frozen=True):
    """Nodes to change before anything is decided. `added` has nodes to copy, and how many copies."""

    added: tuple[tuple[str, int], ...] = ()
    removed: tuple[str, ...] = ()
    cordoned: tuple[str, ...] = ()
    uncordoned: tuple[str, ...] = ()


class JobForecast(msgspec.Struct, frozen=True):
    """What would become of a job. `nodes` has the node of each pod that would start. If none would, `why` is the
    reason, `evicts` the pods that would have to go for it, and `then_on` the nodes of its pods after that."""

    job: str
    pods: int
    nodes: dict[str, str]
    why: str = ""
    evicts: tuple[str, ...] = ()
    then_on: dict[str, str] = {}


class Forecast(msgspec.Struct, frozen=True):
    """All jobs, in the order in which they were decided."""

    jobs: tuple[JobForecast, ...]

    @property
    def complete(self) -> bool:
        """Whether every pod would start."""
        return all(len(each.nodes) == each.pods for each in self.jobs)


def change_nodes(dump: ClusterDump, changes: NodeChanges) -> list[Pod]:
    """Changes the nodes of the dump. Returns the pods of removed nodes as they would wait again; those of DaemonSets
    are gone. Raises KubeNexusError for a node that does not exist."""
    _check(dump, [*changes.removed, *changes.cordoned, *changes.uncordoned, *(name for name, _ in changes.added)])
    for name, number in changes.added:
        for node in copies_of(dump.nodes[name], number):
            _set(dump, node)
    for name in (*changes.cordoned, *changes.uncordoned):
        node = dump.nodes[name]
        taints = [each for each in node.spec.taints if each.key != "node.kubernetes.io/unschedulable"]
        _set(dump, replace(node, spec=replace(node.spec, unschedulable=name in changes.cordoned, taints=taints)))
    displaced: list[Pod] = []
    for name in changes.removed:
        for pod in [each for each in dump.pods.values() if each.spec.node_name == name]:
            dump.ledger.remove_pod(pod.key)
            del dump.pods[pod.key]
            if not of_daemon_set(pod) and not is_finished(pod):
                displaced.append(replace(pod, spec=replace(pod.spec, node_name="")))
        dump.ledger.remove_node(name)
        del dump.nodes[name]
    dump.ledger.read_devices()
    return displaced


def add_manifest(dump: ClusterDump, manifest: Manifest) -> list[Pod]:
    """Adds the other objects of a manifest to the dump. Returns its pods. Raises KubeNexusError for a pod that exists
    already, and for an object that cannot be used."""
    for pod in manifest.pods:
        if pod.key in dump.pods:
            raise KubeNexusError(f"pod {pod.key} exists already")
    for kind, raw in manifest.others:
        found = read_object(raw, KINDS[kind].type)
        if isinstance(found, Unreadable):
            raise KubeNexusError(str(found.error))
        apply_object(dump.ledger, kind, found)
    return manifest.pods


def waiting_pods(dump: ClusterDump) -> list[Pod]:
    """Returns the pods of the dump that wait for a node."""
    return [
        pod
        for pod in dump.pods.values()
        if not pod.spec.node_name and not is_finished(pod) and not pod.metadata.deletion_timestamp
    ]


def forecast(dump: ClusterDump, pods: Sequence[Pod], profiles: Profiles, now: float) -> Forecast:
    """Decides for the jobs of these pods, those of higher priority first, each on the state that the earlier ones
    leave. `profiles` returns the planner and the gang settings of a pod."""
    dump.pods.update((pod.key, pod) for pod in pods)
    found = [_forecast(dump, gathered, planner, now) for gathered, planner in _jobs(dump, pods, profiles)]
    return Forecast(tuple(found))


def render_forecast(found: Forecast) -> str:
    """Returns a table of pods and nodes, and below it what keeps jobs waiting and which pods would have to go."""
    rows = [
        (each.job, pod, node) for each in found.jobs for pod, node in (each.nodes or dict.fromkeys(("",), "-")).items()
    ]
    if not rows:
        return "No pod waits.\n"
    lines = text_table([("JOB", "POD", "NODE"), *((job, pod or "-", node) for job, pod, node in rows)])
    for each in found.jobs:
        if len(each.nodes) < each.pods:
            lines += ["", f"WAITS    {each.job}: {each.pods - len(each.nodes)} of {each.pods} pods"]
            lines += [f"WHY      {each.why}"] if each.why else []
        if each.evicts:
            more = f" and {len(each.evicts) - 20} more" if len(each.evicts) > 20 else ""
            lines.append(f"EVICT    {', '.join(each.evicts[:20])}{more}")
            lines.append(f"THEN ON  {', '.join(sorted(set(each.then_on.values()))[:20])}")
    return "\n".join(lines) + "\n"


def _jobs(dump: ClusterDump, pods: Iterable[Pod], profiles: Profiles) -> Iterator[tuple[GatheredJob, Planner]]:
    jobs: dict[str, tuple[GatheredJob, Planner]] = {}
    members: set[str] = set()
    for pod in pods:
        if pod.key not in members:
            planner, gangs = profiles(pod)
            found = job_of_pod(pod, dump.pods, dump.ledger.groups, partial(_default_topology, gangs))
            members.update(each.key for each in found.job.pods)
            jobs.setdefault(found.job.key, (found, planner))
    yield from sorted(jobs.values(), key=lambda pair: -pair[0].job.priority)


def _default_topology(gangs: GangSettings, pod: Pod) -> TopologyRequest:
    return gangs.default_topology(pod.metadata.namespace)


def _forecast(dump: ClusterDump, found: GatheredJob, planner: Planner, now: float) -> JobForecast:
    job, title, size = found.job, found.gang or found.job.display_name, len(found.job.pods)
    held = found.held or gate_reason(job.pods[0])
    if held:
        return JobForecast(title, size, {}, held)
    try:
        decision = planner.decide(job, dump.ledger.snapshot(), now)
    except Malformed as problem:
        return JobForecast(title, size, {}, str(problem))
    if decision.placed:
        commit(decision, job, dump.ledger, now)
        return JobForecast(title, size, {each.pod: each.node for each in decision.placements})
    gone = decision.preemption
    if gone is None:
        return JobForecast(title, size, {}, decision.full_sentence())
    then_on = {each.pod: each.node for each in gone.nominations}
    return JobForecast(title, size, {}, decision.full_sentence(), tuple(each.pod for each in gone.victims), then_on)


def _set(dump: ClusterDump, node: Node) -> None:
    dump.ledger.upsert_node(node)
    dump.nodes[node.metadata.name] = node


def _check(dump: ClusterDump, names: Iterable[str]) -> None:
    missing = [name for name in names if name not in dump.nodes]
    if missing:
        raise KubeNexusError(f"node {missing[0]} does not exist")


def planners(profile: Callable[[Pod], tuple[Planner, GangSettings]]) -> Profiles:
    """Returns `profile` with one planner for each scheduler name: its caches serve all its pods."""
    known: dict[str, tuple[Planner, GangSettings]] = {}

    def find(pod: Pod) -> tuple[Planner, GangSettings]:
        name = pod.spec.scheduler_name
        if name not in known:
            known[name] = profile(pod)
        return known[name]

    return find


def parse_added(texts: Iterable[str]) -> tuple[tuple[str, int], ...]:
    """Parses `NODE` and `NODE=NUMBER`. Raises KubeNexusError."""
    found = []
    for text in texts:
        name, _, number = text.partition("=")
        if not name or not (number or "1").isdecimal() or not 0 < int(number or 1) <= 10_000:
            raise KubeNexusError(f"expected NODE or NODE=NUMBER, not {text!r}")
        found.append((name, int(number or 1)))
    return tuple(found)
