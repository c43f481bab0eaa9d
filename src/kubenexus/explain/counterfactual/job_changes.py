"""Changes of the job that may make it start: less topology or fewer constraints, fewer members, a higher priority."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence

import msgspec

from kubenexus.api.core import Affinity, Node, Pod, PodAffinity, PodSpec, Taint, Toleration
from kubenexus.api.gangs.declaration import TopologyRequest
from kubenexus.api.gangs.resolver import declared_gang
from kubenexus.api.tolerations import untolerated
from kubenexus.base.errors import Malformed, truncated
from kubenexus.explain.counterfactual.trials import (
    Change,
    Found,
    Suggestion,
    Trials,
    listed,
    smallest_number,
    smallest_subset,
)
from kubenexus.framework.job import Job
from kubenexus.framework.verdict import Code

KUBELET_TAINTS = "node.kubernetes.io/"  # taints that say how a node is; pods should not tolerate them to get in
MAX_PRIORITY = 1_000_000_000  # that a PriorityClass of a user may have
_MAX_TAINTS = 64
_MAX_CONSTRAINTS = 32
Drop = Callable[[PodSpec], PodSpec]
replace = msgspec.structs.replace


def relaxed_topology(job: Job, trials: Trials) -> list[Found]:
    """The level within which all members must be, only preferred."""
    level = job.topology.required
    if not level:
        return []
    change = Change(replace(job, topology=TopologyRequest(preferred=level, explicit=True)))
    if not trials.places(change):
        return []
    text = f"the gang's required topology {truncated(level)} is only preferred"
    return [Found(Suggestion("topology", text, level=level), change)]


def smaller_minimum(job: Job, trials: Trials) -> list[Found]:
    """The largest minimum below the present one with which the gang starts."""
    if job.minimum < 2 or not trials.places(Change(replace(job, minimum=1))):
        return []
    # Counted from above: `job.minimum - 1` fewer members start, 0 fewer do not.
    fewer, minimal = smallest_number(
        0, job.minimum - 1, lambda number: trials.places(Change(replace(job, minimum=job.minimum - number)))
    )
    change = Change(replace(job, minimum=job.minimum - fewer))
    bound = len(job.bound_nodes)
    number = change.job.minimum + bound
    text = f"the gang starts with {number} member{'' if number == 1 else 's'} instead of {job.minimum + bound}"
    return [Found(Suggestion("minimum", text, number=change.job.minimum + bound, minimal=minimal), change)]


def dropped_constraints(job: Job, trials: Trials) -> list[Found]:
    """The fewest constraints of the pods on nodes and on other pods without which the job starts."""
    by_text: dict[str, Drop] = {}
    for pod in job.pods:
        by_text.update((text, drop) for text, drop in constraints_of(pod.spec) if text not in by_text)
        if len(by_text) > _MAX_CONSTRAINTS:
            return []
    chosen, minimal = smallest_subset(
        list(by_text), lambda texts: trials.places(Change(without_constraints(job, [by_text[text] for text in texts])))
    )
    if not chosen:
        return []
    suggestion = Suggestion(
        "constraint", f"without {listed(chosen)}", constraints=tuple(sorted(chosen)), minimal=minimal
    )
    return [Found(suggestion, Change(without_constraints(job, [by_text[text] for text in chosen])))]


def tolerated_taints(job: Job, trials: Trials) -> list[Found]:
    """The fewest taints that the pods would have to tolerate."""
    tolerations = job.pods[0].spec.tolerations
    counts: Counter[Taint] = Counter()
    for node in trials.nodes.values():
        counts.update(taint for taint in untolerated(tolerations, node.spec.taints) if not of_kubelet(taint))
    taints = [taint for taint, _ in counts.most_common(_MAX_TAINTS)]
    chosen, minimal = smallest_subset(taints, lambda some: trials.places(Change(_tolerating(job, some))))
    if not chosen:
        return []
    names = tuple(sorted(map(taint_text, chosen)))
    suggestion = Suggestion("toleration", f"it tolerates {listed(names)}", constraints=names, minimal=minimal)
    return [Found(suggestion, Change(_tolerating(job, chosen)))]


def higher_priority(job: Job, trials: Trials, visible: Callable[[str], bool]) -> list[Found]:
    """The lowest priority with which other pods have to go for the job, and which. `visible` says of which namespaces
    pods may be named."""
    if any(pod.spec.preemption_policy == "Never" for pod in job.pods):
        return []
    others = {each.priority + 1 for each in trials.ledger.pods.values()}
    steps = sorted(each for each in others if job.priority < each <= MAX_PRIORITY)
    if not steps:
        return []
    found: dict[int, Change] = {}

    def works(number: int) -> bool:
        change = _outranking(_with_priority(job, steps[number - 1]), trials)
        if change is None:
            return False
        found[number] = change
        return True

    if not works(len(steps)):
        return []
    number, minimal = smallest_number(0, len(steps), works)
    change = found[number]
    jobs = _jobs_of([trials.pods[key] for key in change.gone])
    named = tuple(name for name, namespace in jobs if visible(namespace))
    hidden = len(jobs) - len(named)
    parts = [*named[:5], *([f"{len(named) - 5} more"] if len(named) > 5 else [])]
    parts += [f"{hidden} that you may not see"] if hidden else []
    text = f"its priority is at least {steps[number - 1]}" + (
        f"; then these give way: {', '.join(parts)}" if parts else ""
    )
    suggestion = Suggestion(
        "priority", text, number=steps[number - 1], evicts=named, hidden_jobs=hidden, minimal=minimal
    )
    return [Found(suggestion, change)]


def of_kubelet(taint: Taint) -> bool:
    """Whether a taint says how the node is, or that it is cordoned."""
    return taint.key.startswith(KUBELET_TAINTS)


def taint_text(taint: Taint) -> str:
    """Returns a taint as kubectl writes it."""
    value = f"={truncated(taint.value)}" if taint.value else ""
    return f"{truncated(taint.key)}{value}:{taint.effect}"


def lasting_taints(pod: Pod, node: Node) -> tuple[Taint, ...]:
    """Returns the taints about the node's state that the pod does not tolerate."""
    return tuple(taint for taint in untolerated(pod.spec.tolerations, node.spec.taints) if of_kubelet(taint))


def _outranking(job: Job, trials: Trials) -> Change | None:
    """Returns the change in which the victims that the job's priority allows are gone; None if it does not start."""
    decision = trials.decide(Change(job))
    if decision.placed:  # it goes before the gang that the capacity was reserved for
        return Change(job)
    if decision.preemption is None or decision.code is Code.ERROR:
        return None
    victims = tuple(each.pod for each in decision.preemption.victims)
    if not all(key in trials.pods for key in victims):
        return None
    change = Change(job, gone=victims)
    return change if trials.places(change) else None


def _jobs_of(pods: Iterable[Pod]) -> list[tuple[str, str]]:
    """Returns the jobs of these pods by name, with their namespaces."""
    found: dict[str, str] = {}
    for pod in pods:
        try:
            gang = declared_gang(pod)
        except Malformed:
            gang = None
        found[pod.key if gang is None else gang.display_name] = pod.metadata.namespace
    return sorted(found.items())


def _with_priority(job: Job, priority: int) -> Job:
    pods = (replace(pod, spec=replace(pod.spec, priority=max(priority, pod.spec.priority))) for pod in job.pods)
    return replace(job, pods=tuple(pods))


def without_constraints(job: Job, drops: Sequence[Drop]) -> Job:
    """Returns the job whose pods lose these constraints."""
    pods = []
    for pod in job.pods:
        spec = pod.spec
        for drop in drops:
            spec = drop(spec)
        pods.append(pod if spec is pod.spec else replace(pod, spec=spec))
    return replace(job, pods=tuple(pods))


def _tolerating(job: Job, taints: Collection[Taint]) -> Job:
    more = [Toleration(key=each.key, operator="Equal", value=each.value, effect=each.effect) for each in taints]
    pods = (replace(pod, spec=replace(pod.spec, tolerations=[*pod.spec.tolerations, *more])) for pod in job.pods)
    return replace(job, pods=tuple(pods))


# --- constraints of a pod on nodes and other pods ---------------------------------------------------------------------


def constraints_of(spec: PodSpec) -> list[tuple[str, Drop]]:
    """Returns each constraint as a text, and how a spec loses it."""
    found: list[tuple[str, Drop]] = [
        (f"node selector {truncated(key)}={truncated(value)}", _without_selector(key))
        for key, value in spec.node_selector.items()
    ]
    affinity = spec.affinity or Affinity()
    required = None if affinity.node_affinity is None else affinity.node_affinity.required
    if required is not None:
        asked = [
            each for term in required.node_selector_terms for each in (*term.match_expressions, *term.match_fields)
        ]
        texts = (" ".join([truncated(each.key), each.operator, *map(truncated, each.values[:5])]) for each in asked)
        found.append((f"required node affinity ({listed(texts)})", _without_node_affinity))
    for field, what in (("pod_affinity", "affinity"), ("pod_anti_affinity", "anti-affinity")):
        side: PodAffinity | None = getattr(affinity, field)
        if side is not None and side.required:
            keys = sorted({truncated(term.topology_key) for term in side.required})
            found.append((f"required pod {what} per {listed(keys)}", _without_pod_affinity(field)))
    hard = [each for each in spec.topology_spread_constraints if each.when_unsatisfiable == "DoNotSchedule"]
    found += (
        (f"spread constraint over {truncated(key)}", _without_spread(key))
        for key in dict.fromkeys(each.topology_key for each in hard)
    )
    return found


def _without_selector(key: str) -> Drop:
    return lambda spec: replace(spec, node_selector={k: v for k, v in spec.node_selector.items() if k != key})


def _without_node_affinity(spec: PodSpec) -> PodSpec:
    affinity = spec.affinity
    if affinity is None or affinity.node_affinity is None:
        return spec
    return replace(spec, affinity=replace(affinity, node_affinity=replace(affinity.node_affinity, required=None)))


def _without_pod_affinity(field: str) -> Drop:
    def drop(spec: PodSpec) -> PodSpec:
        side = getattr(spec.affinity, field, None)
        if spec.affinity is None or side is None:
            return spec
        return replace(spec, affinity=replace(spec.affinity, **{field: replace(side, required=[])}))

    return drop


def _without_spread(key: str) -> Drop:
    def keeps(each: object) -> bool:
        return getattr(each, "topology_key", "") != key or getattr(each, "when_unsatisfiable", "") != "DoNotSchedule"

    return lambda spec: replace(spec, topology_spread_constraints=list(filter(keeps, spec.topology_spread_constraints)))
