"""Makes the scheduling queue, and its view of each profile: how jobs are signed, and which events may help them."""

from collections.abc import Iterable, Mapping

from kubenexus.api.core import Pod
from kubenexus.api.keys.gang import KUEUE_WORKLOAD
from kubenexus.api.keys.tenant import TIERS
from kubenexus.api.runtimes import runtime_class
from kubenexus.base.clock import Clock
from kubenexus.config import Configuration
from kubenexus.config.queue_settings import usage_half_life
from kubenexus.config.tenant_settings import TenantSettings, tenant_settings
from kubenexus.framework import pod_limits
from kubenexus.framework.aging import Aging
from kubenexus.framework.extension_points import PreEnqueue
from kubenexus.plan import tier_limits
from kubenexus.plan.decide import Planner
from kubenexus.plan.gang import empty_capacity, reservation
from kubenexus.plan.node_backoff import NodeBackoff
from kubenexus.plan.reserved_capacity import own_reservations
from kubenexus.queue.backoff_policy import BackoffPolicy
from kubenexus.queue.queue_profile import QueueProfile
from kubenexus.queue.scheduling_queue import SchedulingQueue
from kubenexus.state.ledger import Ledger
from kubenexus.state.queues.queue_tree import QueueTree

# Events for refusals that are no plugin's: of gangs as a whole, by a reservation, by the limits of a pod or a queue.
_ALSO = {
    **empty_capacity.EVENTS_TO_REGISTER,
    **reservation.EVENTS_TO_REGISTER,
    **pod_limits.EVENTS_TO_REGISTER,
    **tier_limits.EVENTS_TO_REGISTER,
}


def make_queue_profiles(
    configuration: Configuration,
    planners: Mapping[str, Planner],
    aging: Mapping[str, Aging | None],
    ledger: Ledger,
    node_backoff: NodeBackoff,
    gates: Iterable[PreEnqueue],
) -> dict[str, QueueProfile]:
    """Returns the queue's view of each profile, by name."""
    gates = tuple(gates)
    tenants = {name: tenant_settings(configuration.args[name], name) for name in planners}
    return {
        name: queue_profile(planner, ledger, node_backoff, aging[name], tenants[name], gates)
        for name, planner in planners.items()
    }


def make_queue(
    configuration: Configuration, profiles: Mapping[str, QueueProfile], queues: QueueTree, clock: Clock
) -> SchedulingQueue:
    """Makes the scheduling queue. Jobs of no profile are signed by the first one."""
    document = configuration.document
    policy = BackoffPolicy(float(document.pod_initial_backoff_seconds), float(document.pod_max_backoff_seconds))
    with_default = {**profiles, "": next(iter(profiles.values()))}
    return SchedulingQueue(with_default, clock, policy, queues, usage_half_life(configuration.args))


def queue_profile(
    planner: Planner,
    ledger: Ledger,
    node_backoff: NodeBackoff,
    aging: Aging | None,
    settings: TenantSettings,
    gates: Iterable[PreEnqueue] = (),
) -> QueueProfile:
    """Makes the queue's view of a planner's profile. `gates` are those that are no plugins of a profile."""
    gates = tuple(gates)
    depends_on_owners = planner.profile_plugins.depends_on_owners
    columns, reservations = ledger.nodes, ledger.reservations
    terms, tenants, queues, kueue = columns.pods.terms, columns.tenants, ledger.queues, ledger.kueue_workloads

    def limit_scope(pod: Pod) -> str:
        """Returns what the limits of queues depend on besides requests: the namespace, and the Workload that the pod
        names, if Kueue admitted it, with the number of its pods."""
        namespace, admitted = pod.metadata.namespace, kueue.admits(pod) if queues.is_active else 0
        return f"{namespace} {admitted} {pod.metadata.annotations[KUEUE_WORKLOAD.key]}" if admitted else namespace

    def sign(pod: Pod) -> bytes:
        signature, namespace = planner.class_cache.short_signature(pod, columns), pod.metadata.namespace
        term_scope, tier = terms.scope(namespace), tenants.scope(pod)
        runtime = runtime_class(pod)
        if runtime:
            signature = b"%b for %d" % (signature, runtime)
        if tier:
            signature = b"%b of %b" % (signature, tier.encode())
        if not term_scope and namespace not in node_backoff.namespaces and not queues.is_active:
            return signature
        # The namespace avoids nodes that others may use, terms of other namespaces may select its pods, or it has turns
        # and limits of its own.
        return b"%b in %b %b" % (signature, limit_scope(pod).encode(), repr(term_scope).encode())

    def scope(pod: Pod) -> tuple[tuple[int, ...], str, str]:
        namespace = pod.metadata.namespace
        return terms.scope(namespace), tenants.scope(pod), limit_scope(pod) if queues.is_active else ""

    def owners() -> int:
        return columns.default_selectors.version if depends_on_owners else 0

    def context() -> tuple[int, frozenset[str], int, bool]:
        return owners(), node_backoff.namespaces, reservations.version, queues.is_active

    boosts, namespaces = {tier: settings.boost(tier, "") for tier in TIERS}, settings.namespace_priorities

    def boost(pod: Pod) -> int:  # as `settings.boost`, in half the time
        more = namespaces.get(pod.metadata.namespace, 0) if namespaces else 0
        return boosts[tenants.of(pod).tier] + more

    return QueueProfile.of(
        planner.profile_plugins,
        sign,
        context,
        also={**_ALSO, **{gate.name: () for gate in gates}},
        gates=gates,
        aging=aging,
        selectors=owners,
        scope=scope,
        boost=boost if settings.orders else None,
        owned=lambda job: own_reservations(job, reservations),
        by_content=planner.profile_plugins.signs_by_content,
    )
