"""The allocator against a plain search that tries every device at every place, and shared outcomes against own ones."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.plugins.dynamic_resources.cluster import (
    DRIVER,
    a_cluster,
    a_device,
    a_request,
    a_slice,
    a_spec,
    an_allocated_claim,
    devices,
)


class Wanted(NamedTuple):
    number: int
    model: str


class Case(NamedTuple):
    models: list[tuple[str, str, int]]  # model, root and the counter that a device takes
    held: frozenset[int]
    claims: list[tuple[list[Wanted], str]]  # requests, and the constraint: "", match or distinct


_DEVICES = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xy"), st.integers(0, 2)), min_size=1, max_size=6)
_REQUESTS = st.lists(st.builds(Wanted, st.integers(1, 3), st.sampled_from(["", "a", "b"])), min_size=1, max_size=3)
_CLAIMS = st.lists(st.tuples(_REQUESTS, st.sampled_from(["", "match", "distinct"])), min_size=1, max_size=2)
_CASES = st.builds(Case, _DEVICES, st.frozensets(st.integers(0, 5), max_size=2), _CLAIMS)
CAPACITY = 4


def found(case: Case, pods: str = "n1") -> list[list[str]] | str:
    counter = {"sharedCounters": [{"name": "s", "counters": {"c": {"value": str(CAPACITY)}}}]}
    two = {"pool": pods, "pool_fields": {"resourceSliceCount": 2}}
    cards = [
        a_device(
            f"d{i}",
            attributes={"model": model, "root": root, "uuid": f"{pods}-{i}"},
            consumesCounters=[{"counterSet": "s", "counters": {"c": {"value": str(taken)}}}] if taken else [],
        )
        for i, (model, root, taken) in enumerate(case.models)
    ]
    held = [f"d{i}" for i in sorted(case.held) if i < len(cards)]
    things: list[Any] = [a_slice(f"{pods}-1", cards, pods, **two), a_slice(f"{pods}-2", [], pods, **two, **counter)]
    cluster = a_cluster(*things, an_allocated_claim("x", *held, pool=pods), nodes={pods: {}})
    return devices(cluster, *map(_spec, case.claims), node=pods)


def _spec(claim: tuple[list[Wanted], str]) -> Any:
    requests, constraint = claim
    wanted = [
        a_request(
            f"r{i}", *([f'device.attributes["{DRIVER}"].model == "{r.model}"'] if r.model else []), count=r.number
        )
        for i, r in enumerate(requests)
    ]
    constraints = [{f"{constraint}Attribute": "gpu.example.com/root"}] if constraint else []
    return a_spec(*wanted, constraints=constraints)


def expected(case: Case) -> list[list[str]] | str:
    """The first solution of a search without any shortcut."""
    held = {i for i in case.held if i < len(case.models)}
    slots = [(c, r, n) for c, (requests, _) in enumerate(case.claims) for r in requests for n in range(r.number)]

    def solutions(at: int, taken: list[tuple[int, int]], start: int) -> Iterator[list[tuple[int, int]]]:
        if at == len(slots):
            yield taken
            return
        c, request, n = slots[at]
        for i in range(start if n else 0, len(case.models)):
            model, root, _ = case.models[i]
            if i in held or any(i == other for _, other in taken) or (request.model and request.model != model):
                continue
            more = [*taken, (c, i)]
            used = sum(case.models[each][2] for each in (*held, *(other for _, other in more)))
            # A pool that is over its limit already gives out no device that takes of it.
            if case.models[i][2] and used > CAPACITY:
                continue
            roots = [case.models[other][1] for own, other in taken if own == c]
            kind = case.claims[c][1]
            if (kind == "match" and any(each != root for each in roots)) or (kind == "distinct" and root in roots):
                continue
            yield from solutions(at + 1, more, i + 1)

    first = next(solutions(0, [], 0), None)
    if first is None:
        return ""
    return [[f"d{i}" for own, i in first if own == c] for c in range(len(case.claims))]


@settings(max_examples=2 * settings().max_examples)
@given(case=_CASES)
def test_the_first_solution_is_that_of_a_plain_search(case: Case) -> None:
    assert found(case) == expected(case)
