"""Values that are kept for the very object that they were worked out from."""

from kubenexus.base.identity_memo import IdentityMemo


def test_a_value_is_found_by_its_object_and_not_by_an_equal_one() -> None:
    memo, thing = IdentityMemo[str](10), [1]
    assert memo.put(thing, "one", 1) == "one"
    assert memo.get(thing) == "one"
    assert memo.get([1]) is None
    assert memo.get(thing, "elsewhere") is None


def test_the_values_used_the_longest_ago_go_first() -> None:
    memo, things = IdentityMemo[int](10), [[number] for number in range(3)]
    memo.put(things[0], 0, 4)
    memo.put(things[1], 1, 4)
    memo.get(things[0])
    memo.put(things[2], 2, 4)
    assert [memo.get(thing) for thing in things] == [0, None, 2]
    assert memo.weight == 8


def test_a_value_that_weighs_more_than_all_may_is_not_kept() -> None:
    memo, thing = IdentityMemo[int](10), [1]
    assert memo.put(thing, 1, 11) == 1
    assert (len(memo), memo.weight) == (0, 0)


def test_a_value_that_is_replaced_weighs_once() -> None:
    memo, thing = IdentityMemo[int](10), [1]
    memo.put(thing, 1, 6)
    memo.put(thing, 2, 5)
    assert (memo.get(thing), memo.weight) == (2, 5)
