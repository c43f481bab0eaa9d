"""One resolver: every way to say which gang a pod is in, and how many of it must start."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.api.core import Pod, SchedulingGroup, WorkloadRef
from kubenexus.api.gangs import resolver
from kubenexus.api.gangs.resolver import Gang, declared_gang, is_gang_member, merge_gangs, resolve_gang
from kubenexus.api.keys import SECTIONS
from kubenexus.api.keys import gang as keys
from kubenexus.base.errors import Malformed
from kubenexus.state.object_kinds import kind_name
from kubenexus.state.pod_group_store import MAX_UNREADABLE, PodGroupStore
from kubenexus.testing.builders import a_pod
from tests.api.gangs.builders import LEAST, NAME, a_member, gang_of, known, member_group, pod_group, workload

NOTHING = PodGroupStore()

_ENTRIES = [entry for section in SECTIONS for entry in section.entries if "<" not in entry.key]


def found(pod: Pod, groups: PodGroupStore = NOTHING) -> tuple[str, int]:
    gang = gang_of(pod, groups)
    assert gang is not None, "no gang"
    assert not gang.missing_object, gang.missing_object
    return gang.title, gang.minimum


def saying(place: str, texts: dict[str, str]) -> Pod:
    """A pod with these labels, or these annotations."""
    return a_pod("a", labels=texts) if place == "labels" else a_pod("a", annotations=texts)


# --- our own keys and their aliases -------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["labels", "annotations"])
@pytest.mark.parametrize("key", [each.key for each in keys.NAME.spellings])
def test_every_spelling_of_the_name(key: str, place: str) -> None:
    assert found(saying(place, {LEAST: "4", key: "llama"})) == ("default/llama", 4)


@pytest.mark.parametrize("place", ["labels", "annotations"])
@pytest.mark.parametrize("key", [each.key for each in keys.MIN_AVAILABLE.spellings])
def test_every_spelling_of_the_minimum(key: str, place: str) -> None:
    said: dict[str, Any] = {"labels": {NAME: "llama"}, "annotations": {}}
    said[place] = said[place] | {key: "4"}
    assert found(a_pod("a", **said)) == ("default/llama", 4)


def test_name_and_minimum_may_come_under_different_prefixes() -> None:
    labels = {"pod-group.scheduling.sigs.k8s.io/name": "llama", LEAST: "3"}
    assert found(a_pod("a", labels=labels)) == ("default/llama", 3)


def test_a_name_without_a_minimum_is_no_gang_nor_is_a_minimum_without_a_name() -> None:
    assert gang_of(a_pod("a", labels={NAME: "llama"}), NOTHING) is None
    assert gang_of(a_pod("a", labels={LEAST: "4"}), NOTHING) is None
    assert gang_of(a_pod("a", labels={NAME: "", LEAST: "4"}), NOTHING) is None


def test_a_gang_of_one_is_a_plain_pod() -> None:
    assert gang_of(a_member("a", least=1), NOTHING) is None


def test_a_plain_pod_is_in_no_gang() -> None:
    assert gang_of(a_pod("a", labels={"app": "web"}), NOTHING) is None


@pytest.mark.parametrize("value", ["0", "-1", "abc", "4.5", "99999999999999999999", "4000000000", "1e3", "0x10"])
@pytest.mark.parametrize("key", [each.key for each in keys.MIN_AVAILABLE.spellings])
def test_a_malformed_minimum_is_named_with_its_key(key: str, value: str) -> None:
    with pytest.raises(Malformed) as problem:
        gang_of(a_pod("a", labels={NAME: "llama"}, annotations={key: value}), NOTHING)
    assert str(problem.value) == f"annotation {key}: must be a whole number from 1, not {value!r}"


def test_a_minimum_that_is_the_largest_number_there_is() -> None:
    assert found(a_member("a", least=2**31 - 1)) == ("default/llama", 2**31 - 1)


@pytest.mark.parametrize("name", ["a/b", "../x", "a b", "x" * 254, "-a"])
def test_a_name_that_is_none_is_named_with_its_key(name: str) -> None:
    with pytest.raises(Malformed, match=f"{keys.NAME.key}: must be a name of letters"):
        gang_of(a_pod("a", annotations={NAME: name, LEAST: "2"}), NOTHING)


# --- objects ------------------------------------------------------------------------------------------------------


def in_group(name: str = "llama", **fields: Any) -> Pod:
    return a_pod("a", scheduling_group=SchedulingGroup(pod_group_name=name), **fields)


def test_kubernetes_own_pod_group() -> None:
    assert found(in_group(), known(pod_group=pod_group("llama", 8))) == ("default/llama", 8)


def test_a_pod_group_whose_policy_is_basic_is_no_gang() -> None:
    assert gang_of(in_group(), known(pod_group=pod_group("llama"))) is None


def test_a_basic_group_that_must_be_close_is_kept_together() -> None:
    gang = gang_of(in_group(), known(pod_group=pod_group("llama", level="topology.kubernetes.io/rack")))
    assert gang is not None
    assert (gang.minimum, gang.topology.required) == (1, "topology.kubernetes.io/rack")


def in_workload(part: str = "workers", replica: str = "") -> Pod:
    return a_pod("a", workload_ref=WorkloadRef(name="llama", pod_group=part, pod_group_replica_key=replica))


@pytest.mark.parametrize("field", ["podGroups", "podGroupTemplates"])
def test_a_workload_has_a_number_for_each_of_its_groups(field: str) -> None:
    groups = known(workload=workload(field=field, workers=8, driver=2))
    assert found(in_workload("workers"), groups) == ("default/llama/workers", 8)
    assert found(in_workload("driver"), groups) == ("default/llama/driver", 2)


def test_each_replica_of_a_workloads_group_is_a_gang_by_itself() -> None:
    groups = known(workload=workload(workers=8))
    keys_found = {gang.key for r in ("0", "1") if (gang := gang_of(in_workload("workers", r), groups)) is not None}
    assert keys_found == {"default/workload/llama/workers/0", "default/workload/llama/workers/1"}


def test_a_group_that_the_workload_does_not_have() -> None:
    with pytest.raises(Malformed) as problem:
        gang_of(in_workload("drivers"), known(workload=workload(workers=8)))
    said = "Workload.scheduling.k8s.io default/llama: spec.podGroups: has no pod group 'drivers'; it has workers"
    assert str(problem.value) == said


@pytest.mark.parametrize("place", ["labels", "annotations"])
@pytest.mark.parametrize("part", [each.key for each in keys.WORKLOAD_POD_GROUP.spellings])
@pytest.mark.parametrize("name", [each.key for each in keys.WORKLOAD.spellings])
def test_a_workload_by_labels(name: str, part: str, place: str) -> None:
    pod = saying(place, {name: "llama", part: "workers"})
    assert found(pod, known(workload=workload(workers=8, driver=2))) == ("default/llama/workers", 8)


def test_a_workload_with_one_group_needs_no_more_than_its_name() -> None:
    pod = a_pod("a", labels={"scheduling.k8s.io/workload-name": "llama"})
    assert found(pod, known(workload=workload(workers=8))) == ("default/llama", 8)


@pytest.mark.parametrize("place", ["labels", "annotations"])
def test_the_pod_group_of_scheduler_plugins(place: str) -> None:
    pod = saying(place, {"scheduling.x-k8s.io/pod-group": "llama"})
    assert found(pod, known(coscheduling=member_group("llama", 4))) == ("default/llama", 4)


@pytest.mark.parametrize("place", ["labels", "annotations"])
def test_volcanos_pod_group(place: str) -> None:
    pod = saying(place, {"scheduling.k8s.io/group-name": "llama"})
    assert found(pod, known(volcano=member_group("llama", 4))) == ("default/llama", 4)
    assert gang_of(pod, known(volcano=member_group("llama", None))) is None, "no number is one"


def test_kueues_pod_group() -> None:
    labels, notes = {"kueue.x-k8s.io/pod-group-name": "llama"}, {"kueue.x-k8s.io/pod-group-total-count": "4"}
    assert found(a_pod("a", labels=labels, annotations=notes)) == ("default/llama", 4)
    assert gang_of(a_pod("a", labels=labels), NOTHING) is None
    with pytest.raises(Malformed, match=r"annotation kueue.x-k8s.io/pod-group-total-count: must be .* not '0'"):
        gang_of(a_pod("a", labels=labels, annotations={"kueue.x-k8s.io/pod-group-total-count": "0"}), NOTHING)


@pytest.mark.parametrize(
    ("pod", "kind", "group"),
    [
        pytest.param(in_group(), "PodGroup", "scheduling.k8s.io", id="native"),
        pytest.param(in_workload(), "Workload", "scheduling.k8s.io", id="workload"),
        pytest.param(
            a_pod("a", labels={"scheduling.x-k8s.io/pod-group": "llama"}),
            "PodGroup",
            "scheduling.x-k8s.io",
            id="coscheduling",
        ),
        pytest.param(
            a_pod("a", labels={"scheduling.k8s.io/group-name": "llama"}),
            "PodGroup",
            "scheduling.volcano.sh",
            id="volcano",
        ),
    ],
)
def test_a_member_of_a_group_that_is_not_known_waits_for_it_or_for_its_kind(pod: Pod, kind: str, group: str) -> None:
    gang = gang_of(pod, NOTHING)
    assert gang is not None
    assert gang.missing_object == f"{kind}.{group} default/llama to appear"
    groups = PodGroupStore()
    assert groups.unlisted(kind_name(kind, group))
    gang = gang_of(pod, groups)
    assert gang is not None
    assert gang.missing_object == f"{kind}s of {group}, which cannot be listed"


@pytest.mark.parametrize("least", [0, -1, 2**31])
def test_a_malformed_number_in_an_object_is_named_with_its_field(least: int) -> None:
    pod = a_pod("a", labels={"scheduling.x-k8s.io/pod-group": "llama"})
    with pytest.raises(Malformed) as problem:
        gang_of(pod, known(coscheduling=member_group("llama", least)))
    where = "PodGroup.scheduling.x-k8s.io default/llama: spec.minMember"
    assert str(problem.value) == f"{where}: must be a whole number from 1, not {least}"
    with pytest.raises(Malformed, match=r"spec\.schedulingPolicy\.gang\.minCount: must be a whole number from 1"):
        gang_of(in_group(), known(pod_group=pod_group("llama", least or -2)))


# --- which counts -------------------------------------------------------------------------------------------------


def test_the_first_source_counts_and_others_that_disagree_are_warnings() -> None:
    """In the order of the sources: each one is used as soon as those before it say nothing."""
    labels = {
        "scheduling.k8s.io/workload-name": "two",
        "scheduling.x-k8s.io/pod-group": "three",
        NAME: "four",
        LEAST: "4",
        "kueue.x-k8s.io/pod-group-name": "five",
        "scheduling.k8s.io/group-name": "six",
    }
    notes = {"kueue.x-k8s.io/pod-group-total-count": "5"}
    fields: dict[str, Any] = {
        "scheduling_group": SchedulingGroup(pod_group_name="zero"),
        "workload_ref": WorkloadRef(name="one"),
    }
    order = []
    for field in ("scheduling_group", "workload_ref", *labels):
        claim = declared_gang(a_pod("a", labels=labels, annotations=notes, **fields))
        if claim is not None and claim.display_name.partition("/")[2] not in order:
            order.append(claim.display_name.partition("/")[2])
            assert len(claim.warnings) == 7 - len(order)
        fields.pop(field, None)
        labels.pop(field, None)
    assert order == ["zero", "one", "two", "three", "four", "five", "six"]


def test_a_conflict_says_what_is_used_and_what_is_not() -> None:
    labels = {"kueue.x-k8s.io/pod-group-name": "other"}
    pod = a_member("a", labels=labels, annotations={"kueue.x-k8s.io/pod-group-total-count": "3"})
    claim = declared_gang(pod)
    assert claim is not None
    other = "kueue.x-k8s.io/pod-group-name says otherwise: gang default/other, at least 3"
    assert claim.warnings == (f"{NAME} is used; {other}",)


def test_two_sources_that_agree_are_no_conflict() -> None:
    labels = {"kueue.x-k8s.io/pod-group-name": "llama"}
    claim = declared_gang(a_member("a", labels=labels, annotations={"kueue.x-k8s.io/pod-group-total-count": "2"}))
    assert claim is not None
    assert claim.warnings == ()


def test_what_is_malformed_in_a_source_that_does_not_count_is_only_a_warning() -> None:
    labels = {"kueue.x-k8s.io/pod-group-name": "llama"}
    claim = declared_gang(a_member("a", labels=labels, annotations={"kueue.x-k8s.io/pod-group-total-count": "many"}))
    assert claim is not None
    assert len(claim.warnings) == 1
    assert "kueue.x-k8s.io/pod-group-total-count: must be a whole number from 1" in claim.warnings[0]


def test_members_that_ask_for_different_numbers_get_the_largest() -> None:
    gangs = [
        resolve_gang(claim, NOTHING) for n in (2, 4, 3) if (claim := declared_gang(a_member("a", least=n))) is not None
    ]
    assert merge_gangs(gangs).minimum == 4


# --- whose gang it is ---------------------------------------------------------------------------------------------


def test_f67_a_name_in_two_namespaces_is_two_gangs() -> None:
    here, there = (gang_of(a_member("a", namespace=n), NOTHING) for n in ("a", "b"))
    assert isinstance(here, Gang)
    assert isinstance(there, Gang)
    assert (here.key, there.key) == ("a/gang/llama", "b/gang/llama")


def test_f67_nobody_joins_a_group_of_another_namespace() -> None:
    groups = known(pod_group=pod_group("llama", 8, namespace="theirs"))
    gang = gang_of(in_group(namespace="ours"), groups)
    assert gang is not None
    assert gang.missing_object == "PodGroup.scheduling.k8s.io ours/llama to appear"
    with pytest.raises(Malformed, match=r"spec\.schedulingGroup\.podGroupName: must be a name"):
        gang_of(in_group("theirs/llama", namespace="ours"), groups)


def test_gangs_of_one_name_from_different_sources_are_not_the_same() -> None:
    pods = (
        in_group(),
        a_pod("a", labels={"scheduling.x-k8s.io/pod-group": "llama"}),
        a_member("a"),
        a_pod("a", labels={"scheduling.k8s.io/group-name": "llama"}),
    )
    found_keys = {claim.key for pod in pods if (claim := declared_gang(pod)) is not None}
    assert len(found_keys) == len(pods)
    assert all(key.count("/") >= 2 for key in found_keys), "and none is the key of a pod"


# --- objects that are there and cannot be read --------------------------------------------------------------------


def test_a_group_that_cannot_be_read_is_not_called_missing() -> None:
    groups, problem = (
        PodGroupStore(),
        Malformed("Expected `int`, got `str`", field="spec.minMember", subject="PodGroup x/y"),
    )
    pod = a_pod("a", labels={"scheduling.x-k8s.io/pod-group": "llama"})
    kind = kind_name("PodGroup", "scheduling.x-k8s.io")
    assert groups.unreadable(kind, "default/llama", problem)
    assert not groups.unreadable(kind, "default/llama", problem), "it is no news the second time"
    with pytest.raises(Malformed) as raised:
        gang_of(pod, groups)
    where = "PodGroup.scheduling.x-k8s.io default/llama: spec.minMember"
    assert str(raised.value) == f"{where}: Expected `int`, got `str`"
    elsewhere = gang_of(a_pod("a", namespace="theirs", labels={"scheduling.x-k8s.io/pod-group": "llama"}), groups)
    assert elsewhere is not None
    assert elsewhere.missing_object.endswith("theirs/llama to appear")
    groups.gone(kind, "default/llama")
    assert gang_of(pod, groups) is not None


def test_what_was_known_of_a_group_counts_though_it_cannot_be_read_any_more() -> None:
    groups = known(pod_group=pod_group("llama", 8))
    groups.unreadable("PodGroup", "default/llama", Malformed("bad"))
    assert found(in_group(), groups) == ("default/llama", 8)


def test_only_so_many_problems_of_groups_are_remembered() -> None:
    groups = PodGroupStore()
    for i in range(MAX_UNREADABLE + 5):
        groups.unreadable("PodGroup", f"ns/{i}", Malformed("x" * 10_000, field="f" * 10_000))
    assert len(groups.unreadable_keys("PodGroup")) == MAX_UNREADABLE
    assert groups.problem("PodGroup", "ns", "4") is None
    assert len(str(groups.problem("PodGroup", "ns", "5"))) < 700


_TEXTS = st.dictionaries(
    st.sampled_from([spelling for entry in _ENTRIES for spelling in sorted(entry.keys)]),
    st.sampled_from(["g", "2", "true", "preferred", "topology.kubernetes.io/rack", "5m", "?"]),
    max_size=4,
)


@given(_TEXTS, _TEXTS, st.sampled_from([None, SchedulingGroup(pod_group_name="g")]))
def test_a_remembered_declaration_is_what_the_pod_says(
    labels: dict[str, str], annotations: dict[str, str], group: SchedulingGroup | None
) -> None:
    """Of all keys that the registry has, not only of those that are read today."""
    pod = a_pod(labels=labels, annotations=annotations, scheduling_group=group)

    def said(declaration: Callable[[Pod], Any]) -> Any:
        try:
            return declaration(pod)
        except Malformed as problem:
            return str(problem)

    alone = None if not is_gang_member(pod) and declared_gang(pod) is None else said(resolver._declaration)
    assert said(declared_gang) == alone
