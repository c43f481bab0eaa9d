"""When a gang's time is over, and who of it says that it was complete once."""

import pytest

from kubenexus.queue.gangs.bound_members import BoundMember, IncompleteGang, members_to_mark
from kubenexus.testing.builders import a_pod


def member(name: str, node: str = "n", *, witness: bool = False, since: float = 0.0, dated: bool = True) -> BoundMember:
    return BoundMember(a_pod(name, uid=name, node=node), since, started=True, witness=witness, dated=dated)


@pytest.mark.parametrize(
    ("was_complete", "bound_at", "noticed", "patience", "over"),
    [
        pytest.param(False, [100.0], 100.0, 300.0, 400.0, id="never complete: from its first bind"),
        pytest.param(False, [250.0, 100.0], 100.0, 300.0, 400.0, id="never complete: the first of several"),
        pytest.param(False, [100.0], 100.0, 60.0, 160.0, id="never complete: its own patience, however short"),
        pytest.param(False, [100.0], 390.0, 300.0, 510.0, id="never complete, a new scheduler: a replacement's chance"),
        pytest.param(False, [100.0], 9000.0, 300.0, 9120.0, id="never complete, long ago: the same"),
        pytest.param(True, [100.0], 9000.0, 300.0, 9300.0, id="once complete: from when it became incomplete"),
        pytest.param(True, [100.0], 9000.0, 60.0, 9120.0, id="once complete: no less than a replacement's chance"),
    ],
)
def test_when_the_time_of_a_gang_is_over(
    was_complete: bool, bound_at: list[float], noticed: float, patience: float, over: float
) -> None:
    bound = tuple(member(f"m{i}", since=at) for i, at in enumerate(bound_at))
    gang = IncompleteGang("default/gang/g", "default/g", 9, bound, None, was_complete, noticed)
    assert gang.overdue_at(patience, 120.0) == over


@pytest.mark.parametrize(
    ("bound", "asked", "names"),
    [
        pytest.param([member("a", "n1"), member("b", "n2")], set(), ["a", "b"], id="as many as there are"),
        pytest.param([member(str(i), f"n{i}") for i in range(9)], set(), ["0", "1", "2"], id="three are enough"),
        pytest.param(
            [member("a", "n1"), member("b", "n1"), member("c", "n2"), member("d", "n3")],
            set(),
            ["a", "c", "d"],
            id="on different nodes",
        ),
        pytest.param([member("a"), member("b"), member("c"), member("d")], set(), ["a", "b", "c"], id="on one node"),
        pytest.param(
            [member("a", "n1", witness=True), member("b", "n1"), member("c", "n2"), member("d", "n3", witness=True)],
            set(),
            ["c"],
            id="one was lost",
        ),
        pytest.param([member("a", "n1"), member("b", "n2"), member("c", "n3")], {"a", "b", "c"}, [], id="on their way"),
        pytest.param([], set(), [], id="no member"),
    ],
)
def test_a_few_members_say_that_the_gang_was_complete(
    bound: list[BoundMember], asked: set[str], names: list[str]
) -> None:
    assert [each.pod.metadata.name for each in members_to_mark(bound, asked, None)] == names


@pytest.mark.parametrize(
    ("bound", "names"),
    [
        pytest.param(
            [member(name, since=100.0) for name in "abc"], [], id="all were bound when the group was complete"
        ),
        pytest.param([member("a", since=100.0), member("b", since=101.0)], ["b"], id="one was bound afterwards"),
        pytest.param(
            [*(member(name, since=99.0) for name in "abc"), member("d", since=500.0)], [], id="three of them were"
        ),
        pytest.param([member("a", since=99.0, dated=False)], ["a"], id="the API server does not say when"),
    ],
)
def test_members_that_were_bound_when_their_group_was_complete_need_no_mark(
    bound: list[BoundMember], names: list[str]
) -> None:
    assert [each.pod.metadata.name for each in members_to_mark(bound, set(), 100.0)] == names
