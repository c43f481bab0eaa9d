"""Terms of running pods that select a class are counted together: the class costs the same however many there are."""

import random
import tracemalloc
from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from kubenexus.api.core import Affinity, Pod, PodAffinity, PodAffinityTerm, WeightedPodAffinityTerm
from kubenexus.api.meta import ObjectMeta
from kubenexus.api.selectors import LabelSelector, LabelSelectorRequirement
from kubenexus.api.workloads import Namespace
from kubenexus.cycle.class_cache import ClassCache
from kubenexus.plugins import profile_plugins
from kubenexus.state import carried_terms
from kubenexus.state.affinity_terms import PodSelectorTerm
from kubenexus.state.carried_terms import MAX_LOGGED, Effect, Group, effect
from kubenexus.state.existing_terms import MAX_TERMS_CHECKED
from kubenexus.state.ledger import Ledger
from kubenexus.state.pod_counter import PodCounter
from kubenexus.testing.builders import HOSTNAME, ZONE, a_node, a_pod
from kubenexus.testing.harness import a_ledger
from tests.rounds import rounds

EVERYWHERE = LabelSelector()


def wide(number: int, topology: str = HOSTNAME) -> PodAffinityTerm:
    """A term about all pods of all namespaces without a label that none has."""
    wanted = LabelSelectorRequirement(key=f"k{number}", operator="DoesNotExist")
    selector = LabelSelector(match_expressions=[wanted])
    return PodAffinityTerm(topology_key=topology, label_selector=selector, namespace_selector=EVERYWHERE)


def carrier(number: int, terms: int, node: str, *, preferred: bool = False) -> Pod:
    pod = a_pod(f"b{number}", namespace="evil", node=node)
    several = [wide(number * terms + i) for i in range(terms)]
    weighted = [WeightedPodAffinityTerm(weight=1, pod_affinity_term=term) for term in several]
    apart = PodAffinity(preferred=weighted) if preferred else PodAffinity(required=several)
    return replace(pod, spec=replace(pod.spec, affinity=Affinity(pod_anti_affinity=apart)))


def a_cluster(carriers: int, terms: int, *, preferred: bool = False) -> Ledger:
    ledger = a_ledger([a_node(f"n{i}", cpu=1000, labels={ZONE: "ab"[i % 2]}) for i in range(20)])
    for i in range(carriers):
        ledger.upsert_pod(carrier(i, terms, f"n{i % 10}", preferred=preferred))
    return ledger


def victim(number: int) -> Pod:
    return a_pod(f"v{number}", namespace=f"victim-{number}", cpu=1, labels={"app": "w", "index": str(number)})


# --- the size and the work of a class -------------------------------------------------------------------------------


@pytest.mark.parametrize("preferred", [False, True], ids=["required", "preferred"])
def test_a_class_takes_as_much_memory_however_many_terms_select_it(preferred: bool) -> None:
    sizes: list[int] = []
    for carriers in (10, 100):
        ledger, cache = a_cluster(carriers, 100, preferred=preferred), ClassCache(profile_plugins())
        cache.lookup(victim(0), ledger.nodes)
        tracemalloc.start()
        for i in range(1, 11):
            cache.lookup(victim(i), ledger.nodes)
        sizes.append(tracemalloc.get_traced_memory()[0] // 10)
        tracemalloc.stop()
    assert sizes[1] < 2 * sizes[0] + 10_000


def test_the_cache_is_charged_with_the_counters_of_a_class() -> None:
    sizes: list[int] = []
    for terms in (1, 100):
        ledger, cache = a_cluster(10, terms), ClassCache(profile_plugins())
        cache.lookup(victim(0), ledger.nodes)
        sizes.append(sum(cached.held for cached in cache._classes.values()))
        assert cache._nbytes == sum(cached.nbytes + cached.held for cached in cache._classes.values())
    assert sizes[0] == 0
    assert sizes[1] > 8 * 20


class Checks:
    """Counts the terms that are compared with a pod one by one."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.number = 0
        covers = PodSelectorTerm.covers

        def counting(term: PodSelectorTerm, namespace: str, labels: Mapping[str, str] | None) -> bool:
            self.number += 1
            return covers(term, namespace, labels)

        patch.setattr(PodSelectorTerm, "covers", counting)

    def taken(self) -> int:
        number, self.number = self.number, 0
        return number


@pytest.mark.parametrize("preferred", [False, True], ids=["required", "preferred"])
def test_a_decision_checks_a_bounded_number_of_terms(preferred: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger, cache = a_cluster(100, 100, preferred=preferred), ClassCache(profile_plugins())
    checks = Checks(monkeypatch)
    cache.lookup(victim(0), ledger.nodes)
    assert checks.taken() <= MAX_TERMS_CHECKED + MAX_LOGGED, "a new class"
    for number, terms in ((1000, 1), (1001, 10), (1002, 500)):
        before = cache.signature(victim(0), ledger.nodes)
        ledger.upsert_pod(carrier(number, terms, "n15", preferred=preferred))
        checks.taken()
        feasible = cache.lookup(victim(0), ledger.nodes).table.feasible
        assert checks.taken() <= 2 * MAX_TERMS_CHECKED + MAX_LOGGED, "a further carrier"
        assert feasible[ledger.nodes.row_of["n15"]] == preferred
        assert cache.signature(victim(0), ledger.nodes) == before, "the class is the same"


def test_a_carrier_that_comes_or_goes_changes_the_rows_of_its_domain(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger, cache = a_cluster(10, 100), ClassCache(profile_plugins())
    cache.lookup(victim(0), ledger.nodes)
    for number, terms in ((1000, 1), (1001, 500)):
        for present in (True, False):
            pod = carrier(number, terms, "n15")
            ledger.upsert_pod(pod) if present else ledger.remove_pod(pod.key)
            before = cache.work.beyond
            feasible = cache.lookup(victim(0), ledger.nodes).table.feasible
            assert cache.work.beyond - before <= 1
            assert feasible[ledger.nodes.row_of["n15"]] != present


def test_a_node_event_costs_nothing_for_existing_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger, cache = a_cluster(10, 100), ClassCache(profile_plugins())
    cache.lookup(victim(0), ledger.nodes)
    calls: list[PodCounter] = []

    def counting(counter: PodCounter) -> None:
        calls.append(counter)

    monkeypatch.setattr(PodCounter, "relabelled", counting)
    ledger.upsert_node(a_node("n0", cpu=1000, labels={ZONE: "c"}))
    ledger.upsert_node(a_node("further", cpu=1000, labels={ZONE: "c"}))
    assert calls == []


# --- the same as one by one -----------------------------------------------------------------------------------------

KEYS, VALUES, NAMESPACES = ("app", "tier"), ("a", "b", "c"), ("x", "y", "z")


def a_requirement(rng: random.Random) -> LabelSelectorRequirement:
    operator = rng.choice(["In", "NotIn", "Exists", "DoesNotExist"])
    values = rng.sample(VALUES, rng.choice([1, 2])) if operator in {"In", "NotIn"} else []
    return LabelSelectorRequirement(key=rng.choice(KEYS), operator=operator, values=values)


def a_selector(rng: random.Random) -> LabelSelector | None:
    if not rng.randrange(8):
        return None
    return LabelSelector(match_expressions=[a_requirement(rng) for _ in range(rng.choice([0, 1, 1, 2, 3]))])


def a_term(rng: random.Random) -> PodAffinityTerm:
    return PodAffinityTerm(
        topology_key=rng.choice([HOSTNAME, ZONE, ZONE, "nowhere", "rack"]),
        label_selector=a_selector(rng),
        namespaces=rng.sample(NAMESPACES, rng.choice([0, 0, 1, 2])),
        namespace_selector=rng.choice([None, EVERYWHERE, a_selector(rng)]),
    )


def a_side(rng: random.Random, most: int) -> PodAffinity:
    preferred = [
        WeightedPodAffinityTerm(weight=rng.randrange(1, 100), pod_affinity_term=a_term(rng))
        for _ in range(rng.randrange(most))
    ]
    return PodAffinity(required=[a_term(rng) for _ in range(rng.randrange(most))], preferred=preferred)


def one_event(rng: random.Random, ledger: Ledger) -> None:
    node, namespace, number = f"n{rng.randrange(4)}", rng.choice(NAMESPACES), rng.randrange(8)
    match rng.randrange(10):
        case 0 | 1 | 2 | 3 | 4:
            pod, most = a_pod(f"p{number}", namespace=namespace, node=node), rng.choice([2, 4])
            affinity = Affinity(pod_affinity=a_side(rng, most), pod_anti_affinity=a_side(rng, most))
            ledger.upsert_pod(replace(pod, spec=replace(pod.spec, affinity=affinity)))
        case 5 | 6:
            ledger.remove_pod(f"{namespace}/p{number}")
        case 7:
            ledger.remove_node(node)
        case 8:
            rack = {"rack": rng.choice("rs")} if rng.randrange(2) else {}
            ledger.upsert_node(a_node(node, labels={ZONE: rng.choice("uv"), **rack}))
        case _ if rng.randrange(4):
            labels = {rng.choice(KEYS): rng.choice(VALUES)}
            ledger.upsert_namespace(Namespace(metadata=ObjectMeta(name=namespace, labels=labels)))
        case _:
            ledger.remove_namespace(namespace)


def expected(ledger: Ledger, namespace: str, labels: dict[str, str]) -> dict[tuple[Group, str], int]:
    """The same by a look at every pod."""
    nodes, found = ledger.nodes, dict[tuple[Group, str], int]()
    known = nodes.pods._namespace_labels.get(namespace, {})
    for record in ledger.pods.values():
        row = nodes.row_of.get(record.node, -1)
        for carried in record.terms if row >= 0 else ():
            domain = nodes.labels.of_row(row).get(carried.topology)
            if domain is None or not carried.term.covers(namespace, known):
                continue
            if carried.term.selector.matches(labels):
                what, weight = effect(carried)
                key = ((carried.topology, what), domain)
                found[key] = found.get(key, 0) + weight
    return found


def counted(ledger: Ledger, counters: Mapping[Group, PodCounter]) -> dict[tuple[Group, str], int]:
    found: dict[tuple[Group, str], int] = {}
    for group, counter in counters.items():
        names = ledger.nodes.labels.column(group[0]).values.names
        counts = counter.by_domain(group[0]).tolist()
        assert counter.total == sum(counts)
        found |= {(group, name): count for name, count in zip(names[1:], counts[1:], strict=True) if count}
    return found


@pytest.mark.parametrize("logged", [0, 3, MAX_LOGGED])
@pytest.mark.parametrize("seed", range(rounds(10, 40)))
def test_terms_counted_together_are_those_counted_one_by_one(
    seed: int, logged: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(carried_terms, "MAX_LOGGED", logged)
    rng, ledger = random.Random(seed), a_ledger()
    for i in range(4):
        ledger.upsert_node(a_node(f"n{i}", labels={ZONE: "uv"[i % 2]}))
    classes = [(rng.choice(NAMESPACES), {key: rng.choice(VALUES) for key in rng.sample(KEYS, i % 3)}) for i in range(5)]
    held = [ledger.nodes.pods.selected_terms(namespace, labels) for namespace, labels in classes]
    for _ in range(60):
        one_event(rng, ledger)
        for i in rng.sample(range(5), rng.choice([0, 1, 3])):
            seen = {
                group: (counter.version, counted(ledger, {group: counter}))
                for group, counter in held[i].counters.items()
            }
            relabelled = held[i]._seen < ledger.nodes.pods.carried_terms._oldest
            held[i].catch_up()
            assert counted(ledger, held[i].counters) == expected(ledger, *classes[i])
            for group, (version, before) in {} if relabelled else seen.items():
                steps = held[i].counters[group].steps_since(version)
                assert steps is None or steps or before == counted(ledger, {group: held[i].counters[group]})


def test_a_term_of_no_pod_leaves_nothing_behind() -> None:
    ledger = a_cluster(5, 20)
    for i in range(5):
        ledger.remove_pod(f"evil/b{i}")
    terms = ledger.nodes.pods.carried_terms
    assert terms._pods._excluded._named == {}
    assert terms._namespaces._required._named == {}
    assert terms._topologies._codes == {}
    assert len(terms._free) == terms._slots
    for _ in range(300):
        ledger.upsert_pod(carrier(0, 3, "n0"))
        ledger.remove_pod("evil/b0")
    assert len(terms._at_slot) <= 256
    assert Effect.FORBIDS not in {what for _, what in terms.count("default", {})}
