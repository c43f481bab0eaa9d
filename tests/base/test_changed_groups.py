"""Members of groups that changed: each comes once for the changes of its group, and groups take turns."""

from kubenexus.base.changed_groups import ChangedGroups


def groups_of(**members: str) -> ChangedGroups[str]:
    groups = ChangedGroups[str]()
    for group, names in members.items():
        for name in names.split():
            groups.add(group, name)
    return groups


def test_each_member_of_a_group_is_returned_once_for_its_changes() -> None:
    groups = groups_of(n="a b", m="c")
    groups.changed("n")
    groups.changed("nobody's")
    assert [groups.next(), groups.next(), groups.next()] == ["a", "b", None]
    assert not groups
    groups.changed("n")
    assert groups.next() == "a"
    groups.changed("n")  # again, in the middle of it
    assert [groups.next(), groups.next(), groups.next()] == ["b", "a", None]
    groups.changed("n")
    groups.add("n", "late")  # it came after the change
    groups.remove("n", "a")
    assert [groups.next(), groups.next()] == ["b", None]
    groups.remove("n", "b")
    groups.remove("m", "c")
    assert ("n" in groups, "m" in groups) == (True, False)


def test_a_member_that_is_added_again_hides_no_other() -> None:
    groups = groups_of(n="a b c")
    groups.changed("n")
    groups.add("n", "a")
    assert [groups.next(), groups.next(), groups.next()] == ["b", "c", None]


def test_groups_take_turns_and_a_change_again_gives_no_earlier_one() -> None:
    groups, found = groups_of(flips="a0 a1 a2", m="b", o="c"), []
    groups.changed_all()
    for _ in range(7):
        found.append(groups.next())
        groups.changed("flips")
    assert found == ["a0", "b", "c", "a1", "a2", "a0", "a1"]
    assert [groups.next() for _ in range(4)] == ["a2", "a0", "a1", None]
