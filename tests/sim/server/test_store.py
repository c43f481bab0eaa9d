"""The store without anything around it: versions, the log, who listens."""

import pytest

from kubenexus.sim.apiserver.store import ADDED, DELETED, MODIFIED, Compacted, Store, StoreChange


def test_one_counter_for_all_resources() -> None:
    store = Store()
    first = store.next_version()
    store.commit("pods", "a/x", b"1")
    store.commit("nodes", "n", b"2")
    assert store.version == first + 1


def test_a_change_is_told_with_what_there_was_before() -> None:
    store, heard = Store(), list[StoreChange]()
    store.listen("pods", heard.append)
    store.commit("pods", "a/x", b"1")
    store.commit("pods", "a/x", b"2")
    store.commit("pods", "a/x", b"3", deleted=True)
    assert [(each.type, each.data, each.before) for each in heard] == [
        (ADDED, b"1", None),
        (MODIFIED, b"2", b"1"),
        (DELETED, b"3", b"2"),
    ]
    assert store.get("pods", "a/x") is None


def test_who_leaves_hears_nothing_more() -> None:
    store, heard = Store(), list[StoreChange]()
    leave = store.listen("pods", heard.append)
    leave()
    store.commit("pods", "a/x", b"1")
    assert heard == []


def test_the_past_is_reached_by_undoing() -> None:
    store = Store()
    store.commit("pods", "a/x", b"1")
    then = store.version
    store.commit("pods", "a/x", b"2")
    store.commit("pods", "a/y", b"3")
    store.commit("pods", "a/x", b"4", deleted=True)
    assert store.collection("pods").at(then) == {"a/x": b"1"}
    assert store.collection("pods").at(store.version) == {"a/y": b"3"}


def test_the_log_is_bounded_and_says_so() -> None:
    store = Store(log_length=3)
    start = store.version
    for number in range(5):
        store.commit("pods", f"a/{number}", b"x")
    with pytest.raises(Compacted, match="too old resource version"):
        store.collection("pods").since(start)
    assert len(list(store.collection("pods").since(store.version - 3))) == 3


def test_keys_are_in_order_whatever_happens() -> None:
    store = Store()
    for key in ("b/x", "a/z", "a-b/x"):
        store.commit("pods", key, b"x")
    assert store.collection("pods").keys() == ["a-b/x", "a/z", "b/x"]
    store.commit("pods", "a/z", b"x", deleted=True)
    assert store.collection("pods").keys() == ["a-b/x", "b/x"]
