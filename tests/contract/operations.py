"""Operations on a few kinds, drawn at random: what a client might do, and what it must not."""

from typing import Any, NamedTuple

from hypothesis import strategies as st

from tests.contract.api import a_binding, a_budget, a_lease, a_pod, a_widget, an_eviction

KINDS = ("pods", "nodes", "leases", "poddisruptionbudgets", "widgets")
NAMES = ("a", "b", "c")
NOBODY = "nobody"
LEAST = 20
PATCHED = {"pods": "strategic", "nodes": "merge", "leases": "json", "poddisruptionbudgets": "merge", "widgets": "merge"}


class Operation(NamedTuple):
    """One request, before it is known what versions and identities the server gives out."""

    kind: str
    verb: str
    name: str = ""
    body: Any = None
    how: str = ""  # the kind of a patch; which version an update names; a query


NOTHING = st.just("")
NO_BODY: st.SearchStrategy[Any] = st.none()


def _operation(
    kind: st.SearchStrategy[str],
    verb: str,
    name: st.SearchStrategy[str] = NOTHING,
    body: st.SearchStrategy[Any] = NO_BODY,
    how: st.SearchStrategy[str] = NOTHING,
) -> st.SearchStrategy[Operation]:
    return st.tuples(kind, st.just(verb), name, body, how).map(lambda parts: Operation(*parts))


def made(kind: str, name: str, color: str, number: int) -> dict[str, Any]:
    """A valid object; `number` decides about what may differ."""
    makers = {
        "pods": lambda: a_pod(name, nodeName="n1" if number % 2 else ""),
        "nodes": lambda: {"metadata": {"name": name}, "spec": {"unschedulable": bool(number % 2)}},
        "leases": lambda: a_lease(name, holderIdentity=f"h{number}", leaseDurationSeconds=1 + number),
        "poddisruptionbudgets": lambda: a_budget(name, minAvailable=number, selector={"matchLabels": {"color": color}}),
        "widgets": lambda: a_widget(name, size=number),
    }
    item = makers[kind]()
    item["metadata"]["labels"] = {"color": color}
    if number == 3:
        item["metadata"]["finalizers"] = ["contract.kubenexus.io/hold"]
    return item


names = st.sampled_from(NAMES)
kinds = st.sampled_from(KINDS)
colors = st.sampled_from(("red", "green"))
numbers = st.integers(0, 4)


# ---- what may succeed ------------------------------------------------------------------------------------------------

Target = tuple[str, str]  # a kind and a name


@st.composite
def creates(draw: st.DrawFn) -> Operation:
    kind, name = draw(kinds), draw(names)
    query = draw(st.sampled_from(("", "", "", "", "", "dryRun=All")))
    return Operation(kind, "create", name, made(kind, name, draw(colors), draw(numbers)), query)


@st.composite
def updates(draw: st.DrawFn, target: Target) -> Operation:
    how = draw(st.sampled_from(("current", "current", "current", "stale", "none", "other")))
    return Operation(target[0], "update", target[1], made(*target, draw(colors), draw(numbers)), how)


@st.composite
def patches(draw: st.DrawFn, target: Target) -> Operation:
    kind, name = target
    color = draw(colors)
    change = draw(st.sampled_from(("label", "drop", "free", "spec", "same")))
    body: Any = {
        "label": {"metadata": {"labels": {"color": color}}},
        "drop": {"metadata": {"labels": None}},
        "free": {"metadata": {"finalizers": None}},
        "spec": {"spec": SPECS[kind]},
        "same": {},
    }[change]
    how = "merge"
    if change == "label" and PATCHED[kind] == "json":
        how, body = "json", [{"op": "replace", "path": "/metadata/labels/color", "value": color}]
    elif change == "label":
        how = PATCHED[kind]
    return Operation(kind, "patch", name, body, how)


SPECS: dict[str, Any] = {
    "pods": {"activeDeadlineSeconds": 60},
    "nodes": {"unschedulable": True},
    "leases": {"leaseTransitions": 2},
    "poddisruptionbudgets": {"minAvailable": None, "maxUnavailable": "50%"},
    "widgets": {"mode": "b"},
}
STATUSES: dict[str, list[Any]] = {
    "pods": [
        {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
        {"phase": "Succeeded"},
    ],
    "nodes": [{"capacity": {"cpu": "2000m"}}, {"conditions": [{"type": "Ready", "status": "True"}]}],
    "poddisruptionbudgets": [
        {"observedGeneration": 1, "disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1},
        {"observedGeneration": 9, "disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2},
    ],
    "widgets": [{"phase": "x"}, {"phase": "y"}],
}


@st.composite
def statuses(draw: st.DrawFn, target: Target) -> Operation:
    if target[0] not in STATUSES:
        return draw(patches(target))
    status = draw(st.sampled_from(STATUSES[target[0]]))
    return Operation(target[0], "status", target[1], {"status": status}, "merge")


@st.composite
def deletes(draw: st.DrawFn, target: Target) -> Operation:
    options = [{}, {"gracePeriodSeconds": 0}, {"gracePeriodSeconds": 7}, {"dryRun": ["All"]}]
    body = draw(st.sampled_from([*options, {"propagationPolicy": "Background"}]))
    how = draw(st.sampled_from(("", "", "current", "stale")))
    return Operation(target[0], "delete", target[1], body, how)


def on_pods(target: Target) -> list[st.SearchStrategy[Operation]]:
    """Bound and evicted are pods only."""
    kind, name = target
    if kind != "pods":
        return []
    return [
        st.sampled_from(("n1", "n2")).map(lambda node: Operation(kind, "bind", name, a_binding(name, node))),
        st.sampled_from(("", "dryRun=All")).map(lambda how: Operation(kind, "evict", name, an_eviction(name), how)),
    ]


@st.composite
def aimed(draw: st.DrawFn, targets: list[Target]) -> Operation:
    """Something done to one of these."""
    target = draw(st.sampled_from(targets))
    read = st.just(Operation(target[0], "get", target[1]))
    actions = [updates(target), patches(target), statuses(target), deletes(target), read, *on_pods(target)]
    return draw(draw(st.sampled_from(actions)))


_views = st.sampled_from(
    (
        "",
        "labelSelector=color%3Dred",
        "labelSelector=color+notin+(red)",
        "limit=1",
        "fieldSelector=metadata.name%3Da",
    )
)
_halves = st.sampled_from(("color%3Dred", "color%3Dgreen"))
lists = _operation(kinds, "list", how=_views)
sweeps = _operation(kinds, "deletecollection", how=_halves)
applies = st.builds(
    lambda name, holder, manager, force: Operation(
        "leases", "apply", name, a_lease(name, holderIdentity=holder), f"fieldManager={manager}&force={force}"
    ),
    names,
    st.sampled_from(("x", "y")),
    st.sampled_from(("one", "two")),
    st.sampled_from(("true", "false")),
)

# ---- what cannot succeed ---------------------------------------------------------------------------------------------

_WRONG: dict[str, list[Any]] = {
    "pods": [
        a_pod("a", containers=[]),
        a_pod("a", restartPolicy="X"),
        a_pod("a", priorityClassName="x"),
        b"{",
        a_pod("A_"),
    ],
    "nodes": [
        {"metadata": {"name": "a"}, "spec": {"taints": [{"key": "a", "effect": "X"}]}},
        {"metadata": {"name": "a"}, "status": {"capacity": {"cpu": "x"}}},
        {"metadata": {"name": "A_"}},
    ],
    "leases": [
        a_lease("a", leaseDurationSeconds=0),
        a_lease("a", leaseTransitions="x"),
        {"kind": "Pod", "apiVersion": "v1"},
    ],
    "poddisruptionbudgets": [a_budget("a", minAvailable=1, maxUnavailable=1), a_budget("a", minAvailable="x")],
    "widgets": [a_widget("a"), a_widget("a", size=11), a_widget("a", size="x"), {"metadata": {"name": "a"}}],
}


@st.composite
def wrong_creates(draw: st.DrawFn) -> Operation:
    kind = draw(kinds)
    return Operation(kind, "create", "", draw(st.sampled_from(_WRONG[kind])))


_missing = st.one_of(
    _operation(kinds, "get", st.just(NOBODY)),
    _operation(kinds, "delete", st.just(NOBODY)),
    _operation(kinds, "patch", st.just(NOBODY), st.just({}), st.just("merge")),
    st.just(Operation("pods", "bind", NOBODY, a_binding(NOBODY, "n1"))),
    st.just(Operation("pods", "evict", NOBODY, an_eviction(NOBODY))),
    st.just(Operation("pods", "status", NOBODY, {"status": {}}, "merge")),
)
_questions = st.sampled_from(("labelSelector=a+b", "fieldSelector=x%3Dy", "limit=x"))
_changes: st.SearchStrategy[Any] = st.sampled_from(([], {"metadata": {"name": "q"}}))
_senseless = st.one_of(
    _operation(kinds, "list", how=_questions),
    _operation(kinds, "patch", names, _changes, st.just("merge")),
    _operation(kinds, "delete", names, st.just({"preconditions": {"uid": "x"}})),
    _operation(kinds, "delete", names, st.just({"propagationPolicy": "X"})),
    _operation(kinds, "update", names, st.just({"metadata": {"name": "q"}}), st.just("none")),
    st.just(Operation("pods", "bind", "a", a_binding("b", "n1"))),
)
wrong = st.one_of(wrong_creates(), _missing, _senseless)
others = st.one_of(creates(), lists, sweeps, applies)


@st.composite
def sequences(draw: st.DrawFn) -> list[Operation]:
    """At least twenty operations; of every ten, at least three that cannot succeed."""
    count = draw(st.integers(LEAST, LEAST + 10))
    bad, first = -(-count * 3 // 10), count // 4
    distinct = st.lists(creates(), min_size=first, max_size=first, unique_by=lambda each: (each.kind, each.name))
    made_first = draw(distinct)
    targets = [(each.kind, each.name) for each in made_first]
    anything = st.one_of(aimed(targets), aimed(targets), aimed(targets), others)
    rest = count - bad - first
    chosen = [*made_first, *draw(st.lists(anything, min_size=rest, max_size=rest))]
    for operation in draw(st.lists(wrong, min_size=bad, max_size=bad)):
        chosen.insert(draw(st.integers(0, len(chosen))), operation)
    return chosen
