"""News is handed over in portions of about a megabyte and of a bounded amount of work, in order and without a loss."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.api.core import Pod
from kubenexus.client.calls import ApiError
from kubenexus.client.watch_events import MAX_WORK, PORTION, decode_watch_lines, portions, split_batch
from tests.client.cluster import PODS, bookmark, event, following, page, pod, says
from tests.client.server import run


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param([10, 20, 30], [[0, 1, 2]], id="small ones together"),
        pytest.param([PORTION + 1], [[0]], id="one that is larger than a portion"),
        pytest.param([5, PORTION + 1, 5], [[0], [1], [2]], id="a large one by itself"),
        pytest.param([PORTION // 2] * 4, [[0, 1], [2, 3]], id="two halves fill one"),
        pytest.param([PORTION, 1], [[0], [1]], id="a full one takes no more"),
    ],
)
def test_portions(sizes: list[int], expected: list[list[int]]) -> None:
    assert list(portions(list(range(len(sizes))), sizes)) == expected


@given(sizes=st.lists(st.integers(0, 2 * PORTION), max_size=30))
def test_nothing_is_lost_and_only_a_single_one_is_larger_than_a_portion(sizes: list[int]) -> None:
    found = list(portions(list(range(len(sizes))), sizes))
    assert [each for portion in found for each in portion] == list(range(len(sizes)))
    assert all(len(portion) == 1 or sum(sizes[i] for i in portion) <= PORTION for portion in found)


def by_priority(thing: Pod) -> int:
    return thing.spec.priority


@given(work=st.lists(st.integers(0, 2 * MAX_WORK), max_size=20), ends=st.sampled_from(["", "bookmark", "error"]))
def test_a_batch_is_split_by_work_and_each_part_has_the_version_of_its_last_event(work: list[int], ends: str) -> None:
    lines = [event("ADDED", pod(f"p{i}", 20 + i, priority=units)) for i, units in enumerate(work)]
    lines += [bookmark(90)] if ends == "bookmark" else [b'{"type":"ERROR","object":{"code":410}}'] if ends else []
    whole = decode_watch_lines(lines, Pod)
    parts = list(split_batch(whole, by_priority))
    assert [each for part in parts for each in part.changes] == whole.changes
    for part in parts:
        assert len(part.changes) <= 1 or sum(by_priority(each.object) for each in part.changes) <= MAX_WORK
    for part in parts[:-1]:
        assert (part.version, part.bookmarked) == (part.changes[-1].object.metadata.resource_version, False)
        assert part.error is None
    last = parts[-1]
    assert (last.version, last.bookmarked) == (whole.version, whole.bookmarked)
    assert isinstance(last.error, ApiError) is (ends == "error")
    assert (parts[0].first, {part.first for part in parts[1:]} - {""}) == (whole.first, set())


def test_a_store_that_went_back_is_noticed_before_the_first_part() -> None:
    lines = [event("ADDED", pod(f"p{i}", 20 - i, priority=MAX_WORK)) for i in range(3)]
    assert [part.rewound for part in split_batch(decode_watch_lines(lines, Pod), by_priority)] == ["18", "", ""]


def test_lists_and_watches_are_handed_over_by_work() -> None:
    target = msgspec.structs.replace(PODS, work=by_priority)
    listed = [pod(f"a{i}", 1 + i, priority=MAX_WORK // 2) for i in range(5)]
    events = [event("ADDED", pod(f"b{i}", 20 + i, priority=MAX_WORK // 2)) for i in range(5)]

    async def main() -> None:
        async with following([page(*listed)], [says(b"".join(events))], target=target) as it:
            await it.until(lambda: it.reflector.version == "24")
            pages = it.told.log[1 : it.told.log.index("end")]
            assert pages == [["a0", "a1"], ["a2", "a3"], ["a4"]]
            batches = it.told.log[it.told.log.index("end") + 1 :]
            assert all(len(batch) <= 2 for batch in batches)
            assert [each for batch in batches for each in batch] == [f"ADDED b{i}" for i in range(5)]

    run(main())
