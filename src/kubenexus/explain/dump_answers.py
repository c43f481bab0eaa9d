"""Answers the questions of the live API about a cluster that was read, from a file or with the reader's own rights.

There is no queue: jobs have no state, no attempts and no last refusal, and there are no decisions to follow. What the
reader may see was settled when the cluster was read.
"""

from collections.abc import Callable

import msgspec

from kubenexus.api.core import Pod
from kubenexus.api.gangs.declaration import GangDeclaration
from kubenexus.api.gangs.levels import DEFAULT_LEVELS
from kubenexus.api.gangs.resolver import declared_gang
from kubenexus.app.http.api.documents import JobPage, NodePage, QueuePage
from kubenexus.app.http.api.pages import PageQuery, page_of
from kubenexus.app.http.api.questions import EtaQuery, ExplainQuery, ReaderRights, WhatIfQuery
from kubenexus.app.http.api.request_problem import bad_request, not_found
from kubenexus.base.errors import KubeNexusError, Malformed
from kubenexus.config.gang_settings import GangSettings
from kubenexus.config.tenant_settings import TenantSettings
from kubenexus.explain import what_if
from kubenexus.explain.cluster_dump import ClusterDump
from kubenexus.explain.cluster_map import MapSource, cluster_map
from kubenexus.explain.cluster_tables import jobs_of, nodes_of, queues_of
from kubenexus.explain.eta_report import dump_queue, eta_page, find_key
from kubenexus.explain.explanation import explain
from kubenexus.explain.find_pod import Target, find_pod
from kubenexus.explain.gang_report import declared_pods, gang_documents, gang_page
from kubenexus.explain.live_answers import LiveForecast, device_page, for_reader
from kubenexus.explain.manifest_pods import read_manifest
from kubenexus.plan.decide import Planner

Profiles = Callable[[Pod], tuple[Planner, GangSettings, TenantSettings]]
ALL = ReaderRights(nodes=True, all_pods=True)


class ClusterView:
    """The cluster that questions are about. Replaced as a whole when it is read again."""

    def __init__(self, dump: ClusterDump) -> None:
        self.dump = dump


class DumpAnswers:
    """Implements `app.http.api.questions.LiveQuestions` for a cluster that was read."""

    def __init__(self, profiles: Profiles) -> None:
        self._profiles = profiles

    def explain(self, view: ClusterView, query: ExplainQuery, now: float) -> bytes:
        dump = view.dump
        try:
            pod = find_pod(Target(query.kind.lower(), "", query.name), query.namespace, dump.pods, "the cluster")
            planner, gangs, tenants = self._profiles(pod)
        except KubeNexusError as problem:
            raise not_found(str(problem)) from None
        found = explain(
            pod,
            dump.pods,
            dump.ledger,
            planner,
            0.0,
            nodes=query.nodes,
            gangs=gangs,
            settings=tenants,
            node_objects=dump.nodes,
        )
        return msgspec.json.encode(for_reader(found, ALL))

    def whatif(self, view: ClusterView, query: WhatIfQuery, now: float) -> bytes:
        request, dump = query.request, view.dump
        added = tuple(f"{name}={number}" for name, number in request.add_nodes.items())
        try:
            changes = what_if.NodeChanges(
                what_if.parse_added(added), request.remove_nodes, request.cordon, request.uncordon
            )
            pods = what_if.change_nodes(dump, changes)
            if request.manifest:
                manifest = read_manifest(request.manifest, "manifest", query.namespace, dump.priorities)
                pods += what_if.add_manifest(dump, manifest)
            else:
                pods += what_if.waiting_pods(dump)
            profiles = what_if.planners(lambda pod: self._profiles(pod)[:2])
            found = what_if.forecast(dump, pods, profiles, 0.0)
        except KubeNexusError as problem:
            raise bad_request(str(problem)) from None
        return msgspec.json.encode(LiveForecast(found.jobs))

    def eta(self, view: ClusterView, query: EtaQuery, now: float) -> bytes:
        wanted = find_key(query, view.dump.pods) if query.name else ""
        jobs, planners = dump_queue(view.dump, self._profiles)
        return eta_page(jobs, planners, view.dump.ledger, query, wanted, now)

    def devices(self, view: ClusterView, query: PageQuery, node: str) -> bytes:
        return device_page(view.dump.ledger, query, node)

    def jobs(self, view: ClusterView, query: PageQuery) -> bytes:
        some, after = page_of(jobs_of(view.dump, query.namespace), lambda each: each.name, query)
        return msgspec.json.encode(JobPage(tuple(some), after))

    def queues(self, view: ClusterView, query: PageQuery) -> bytes:
        some, after = page_of(queues_of(view.dump, query.namespace), lambda each: each.namespace, query)
        return msgspec.json.encode(QueuePage(tuple(some), after))

    def nodes(self, view: ClusterView, query: PageQuery) -> bytes:
        some, after = page_of(nodes_of(view.dump), lambda each: each.name, query)
        return msgspec.json.encode(NodePage(tuple(some), after))

    def gangs(self, view: ClusterView, query: PageQuery, name: str, rights: ReaderRights) -> bytes:
        dump = view.dump
        found = gang_documents(declared_pods(dump.pods.values()), dump.ledger, DEFAULT_LEVELS, query.namespace, {})
        return msgspec.json.encode(gang_page(found, query, name, nodes=rights.nodes))

    def map(self, view: ClusterView, namespace: str) -> bytes:
        dump = view.dump

        def claim(key: str) -> GangDeclaration | None:
            try:
                return declared_gang(dump.pods[key]) if key in dump.pods else None
            except Malformed:
                return None

        return msgspec.json.encode(cluster_map(MapSource(dump.ledger, dump.pods, claim, DEFAULT_LEVELS, namespace)))
