"""Answers questions about a running scheduler, in a copy of its process (`app.http.api.state_copies`).

The ledger, the planners with their caches and the pods that wait are those of the scheduler at that moment, so the
answer is what the scheduler would decide. Of pods on nodes it keeps no annotations: whether such a pod would be placed
again is answered without them.
"""

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from kubenexus.api.core import Pod
from kubenexus.api.gangs.declaration import GangDeclaration
from kubenexus.api.gangs.job_key import namespace_of
from kubenexus.app.http.api import pages
from kubenexus.app.http.api.pages import PageQuery
from kubenexus.app.http.api.questions import EtaQuery, ExplainQuery, ReaderRights, WhatIfQuery
from kubenexus.app.http.api.queue_entries import queue_entries
from kubenexus.app.http.api.request_problem import bad_request, forbidden, not_found
from kubenexus.base.errors import KubeNexusError
from kubenexus.config.gang_settings import GangSettings
from kubenexus.explain import what_if
from kubenexus.explain.cluster_dump import ClusterDump
from kubenexus.explain.cluster_map import MapSource, cluster_map
from kubenexus.explain.counterfactual.suggest import Counterfactuals, render_counterfactuals
from kubenexus.explain.eta_report import eta_page, find_key
from kubenexus.explain.explanation import Explanation, explain
from kubenexus.explain.find_pod import Target, look_up
from kubenexus.explain.gang_report import GangPod, gang_documents, gang_page
from kubenexus.explain.manifest_pods import Manifest, read_manifest
from kubenexus.explain.node_devices import NodeDeviceReport, device_reports
from kubenexus.explain.what_if import Forecast, JobForecast
from kubenexus.plan.decide import Planner
from kubenexus.state.ledger import Ledger

if TYPE_CHECKING:
    from kubenexus.app.scheduler import Scheduler

PLACED = "it would be placed"
# Suggestions that name no node and no property of one.
_WITHOUT_NODES = frozenset({"topology", "constraint", "minimum", "priority"})


class LiveExplanation(msgspec.Struct, frozen=True):
    """Why a pod waits. `explanation` has all of it, and is None for a reader who may not list nodes; `starts_if` then
    has no suggestions that name nodes."""

    pod: str
    placed: bool
    message: str
    bound: bool = False
    starts_if: Counterfactuals | None = None
    explanation: Explanation | None = None


class LiveForecast(msgspec.Struct, frozen=True):
    """What would become of jobs. `hidden_jobs` and `hidden_evictions` count those that the reader may not see."""

    jobs: tuple[JobForecast, ...]
    hidden_jobs: int = 0
    hidden_evictions: int = 0


class DevicePage(msgspec.Struct, frozen=True):
    items: tuple[NodeDeviceReport, ...]
    next: str = ""


class LiveAnswers:
    """Implements `app.http.api.questions.LiveQuestions`."""

    def explain(self, scheduler: "Scheduler", query: ExplainQuery, now: float) -> bytes:
        pods = known_pods(scheduler)
        pod = look_up(Target(query.kind.lower(), "", query.name), query.namespace, pods)
        if pod is None:  # no similar names: the reader may not see them
            what = query.kind or "pod or job"
            raise not_found(f"{what} {query.name} does not exist in namespace {query.namespace}")
        planner, gangs = _profile(scheduler, pod)
        found = explain(
            pod,
            pods,
            scheduler.ledger,
            planner,
            now,
            nodes=query.nodes,
            gangs=gangs,
            node_objects=scheduler.cache.nodes,
            visible=lambda namespace: query.rights.all_pods or namespace == query.namespace,
        )
        return msgspec.json.encode(for_reader(found, query.rights))

    def whatif(self, scheduler: "Scheduler", query: WhatIfQuery, now: float) -> bytes:
        request, rights = query.request, query.rights
        dump = ClusterDump(scheduler.ledger, known_pods(scheduler), dict(scheduler.cache.nodes), [], {})
        added = tuple(f"{name}={number}" for name, number in request.add_nodes.items())
        try:
            changes = what_if.NodeChanges(
                what_if.parse_added(added), request.remove_nodes, request.cordon, request.uncordon
            )
            pods = what_if.change_nodes(dump, changes)
            if request.manifest:
                manifest = read_manifest(request.manifest, "manifest", query.namespace, _priorities(dump.pods.values()))
                _check_namespaces(manifest, query)
                pods += what_if.add_manifest(dump, manifest)
            else:
                pods += what_if.waiting_pods(dump)
            found = what_if.forecast(dump, pods, partial(_profile, scheduler), now)
        except KubeNexusError as problem:
            raise bad_request(str(problem)) from None
        return msgspec.json.encode(_visible(found, query.namespace, rights))

    def eta(self, scheduler: "Scheduler", query: EtaQuery, now: float) -> bytes:
        wanted = find_key(query, known_pods(scheduler)) if query.name else ""
        return eta_page(queue_entries(scheduler.queue, now), scheduler.planners, scheduler.ledger, query, wanted, now)

    def devices(self, scheduler: "Scheduler", query: PageQuery, node: str) -> bytes:
        return device_page(scheduler.ledger, query, node)

    def jobs(self, scheduler: "Scheduler", query: PageQuery) -> bytes:
        return pages.jobs_page(scheduler, query)

    def queues(self, scheduler: "Scheduler", query: PageQuery) -> bytes:
        return pages.queues_page(scheduler, query)

    def nodes(self, scheduler: "Scheduler", query: PageQuery) -> bytes:
        return pages.nodes_page(scheduler, query)

    def gangs(self, scheduler: "Scheduler", query: PageQuery, name: str, rights: ReaderRights) -> bytes:
        members = (
            GangPod(key, each.claim, each.since, each.pod.spec.priority)
            for key, each in scheduler.registry.members.items()
        )
        why = {each.job.key: pages.job_document(each).why for each in scheduler.queue.jobs() if each.job.is_gang}
        found = gang_documents(members, scheduler.ledger, pages.levels_of(scheduler), query.namespace, why)
        return msgspec.json.encode(gang_page(found, query, name, nodes=rights.nodes))

    def map(self, scheduler: "Scheduler", namespace: str) -> bytes:
        members = scheduler.registry.members

        def claim(key: str) -> GangDeclaration | None:
            member = members.get(key)
            return None if member is None else member.claim

        levels = pages.levels_of(scheduler)
        source = MapSource(scheduler.ledger, scheduler.cache.pods, claim, levels, namespace)
        return msgspec.json.encode(cluster_map(source))


def known_pods(scheduler: "Scheduler") -> dict[str, Pod]:
    """Returns all pods, those that wait with all their fields."""
    pods = dict(scheduler.cache.pods)
    waiting = [pod for queued in scheduler.queue.jobs() for pod in queued.job.pods]
    waiting += [member.pod for member in scheduler.registry.members.values() if not member.node]
    pods.update((pod.key, pod) for pod in waiting if pod.key in pods)
    # To look at each record would copy the memory of all.
    for key, record in scheduler.ledger.pods.items() if scheduler.ledger.assumed else ():
        pod = pods.get(key)
        if pod is not None and not pod.spec.node_name:  # assumed: the watch has not shown the node yet
            pods[key] = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=record.node))
    return pods


def device_page(ledger: Ledger, query: PageQuery, node: str) -> bytes:
    """Returns the devices of a node, or ("") a page of those of all. Raises RequestProblem for an unknown node."""
    if node and node not in ledger.nodes.row_of:
        raise not_found(f"node {node} does not exist")
    some: list[NodeDeviceReport] = []
    for name in [node] if node else [each for each in sorted(ledger.nodes.row_of) if each > query.after]:
        some += [each for each in device_reports(ledger, name) if node or each.devices or each.warnings]
        if len(some) > query.limit:
            break
    more = some[query.limit - 1].node if len(some) > query.limit else ""
    return msgspec.json.encode(DevicePage(tuple(some[: query.limit]), more))


def _profile(scheduler: "Scheduler", pod: Pod) -> tuple[Planner, GangSettings]:
    name = pod.spec.scheduler_name
    if name not in scheduler.planners:
        raise not_found(f"pod {pod.key} is not one of this scheduler's: its spec.schedulerName is {name}")
    return scheduler.planners[name], scheduler.gangs[name]


def for_reader(found: Explanation, rights: ReaderRights) -> LiveExplanation:
    """Returns what a reader may see of an explanation."""
    placed = found.placement is not None
    message = found.held or found.decision.sentence(namespace_of(found.pod))
    if rights.nodes:
        return LiveExplanation(found.pod, placed, message, bool(found.bound), found.starts_if, found)
    starts_if = found.starts_if
    if starts_if is not None:
        few = tuple(each for each in starts_if.suggestions if each.kind in _WITHOUT_NODES)
        starts_if = msgspec.structs.replace(starts_if, suggestions=few)
    return LiveExplanation(found.pod, placed, PLACED if placed else message, bool(found.bound), starts_if)


def render_restricted(found: LiveExplanation) -> str:
    """Returns the lines for a reader who may not list nodes."""
    lines = [found.pod, "", f"WHY      {found.message}"]
    return "\n".join([*lines, "", *render_counterfactuals(found.starts_if)]).rstrip() + "\n"


def _priorities(pods: Iterable[Pod]) -> dict[str, int]:
    """Returns the values of PriorityClasses, as admission wrote them into pods; the default is under ""."""
    known = {pod.spec.priority_class_name: pod.spec.priority for pod in pods if pod.spec.priority_class_name}
    return {"": 0, **known}


def _check_namespaces(manifest: Manifest, query: WhatIfQuery) -> None:
    """Raises RequestProblem for pods of other namespaces, unless the reader may list those."""
    others = {pod.metadata.namespace for pod in manifest.pods} - {query.namespace}
    if others and not query.rights.all_pods:
        raise forbidden(f'the manifest has pods of other namespaces than "{query.namespace}"')


def _visible(found: Forecast, namespace: str, rights: ReaderRights) -> LiveForecast:
    if rights.all_pods:
        return LiveForecast(found.jobs)
    jobs, hidden = [], 0
    for each in found.jobs:
        if namespace_of(each.job) == namespace:
            own = tuple(pod for pod in each.evicts if namespace_of(pod) == namespace)
            hidden += len(each.evicts) - len(own)
            jobs.append(msgspec.structs.replace(each, evicts=own))
    return LiveForecast(tuple(jobs), len(found.jobs) - len(jobs), hidden)
