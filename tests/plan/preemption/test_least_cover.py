"""The fewest elements that free enough, against all sets of them."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.plan.preemption import least_cover as module
from kubenexus.plan.preemption.least_cover import Element, least_cover

AMOUNTS = st.tuples(st.integers(0, 4).map(float), st.integers(0, 4).map(float))
LACKING = st.tuples(st.integers(-1, 8).map(float), st.integers(-1, 8).map(float))


def frees_enough(lacking: tuple[float, ...], some: list[Element]) -> bool:
    return all(sum(each.frees[i] for each in some) >= amount for i, amount in enumerate(lacking))


@given(lacking=LACKING, frees=st.lists(AMOUNTS, max_size=6))
def test_no_fewer_elements_free_enough(lacking: tuple[float, ...], frees: list[tuple[float, float]]) -> None:
    elements = [Element(each, (float(i),), (i,)) for i, each in enumerate(frees)]
    enough = [
        number
        for number in range(len(elements) + 1)
        if any(frees_enough(lacking, list(some)) for some in combinations(elements, number))
    ]
    found = least_cover(lacking, elements)
    assert (None if found is None else len(found)) == (enough[0] if enough else None)
    assert found is None or frees_enough(lacking, found)


@given(lacking=LACKING, frees=st.lists(AMOUNTS, max_size=6))
def test_beyond_its_steps_the_search_still_finds_enough(
    lacking: tuple[float, ...], frees: list[tuple[float, float]]
) -> None:
    elements = [Element(each, (float(i),), (i,)) for i, each in enumerate(frees)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MAX_STEPS", 0)
        found = least_cover(lacking, elements)
    assert (found is not None) == frees_enough(lacking, elements)
    assert found is None or frees_enough(lacking, found)


def test_of_equal_elements_the_cheapest_are_taken() -> None:
    elements = [Element((1.0,), (cost,), (i,)) for i, cost in enumerate((3.0, 1.0, 2.0))]
    found = least_cover((2.0,), elements)
    assert found is not None
    assert sorted(each.pods[0] for each in found) == [1, 2]
