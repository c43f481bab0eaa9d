"""An optional kind that cannot be read holds back the pods that name it, and no others."""

from typing import Any

import pytest

from kubenexus.app.watch.informers import OPTIONAL, WATCHED_KINDS
from kubenexus.client import kinds
from kubenexus.client.kinds import ApiResource
from kubenexus.state.object_kinds import kind_name
from tests.app.kinds_that_fail import ABSENT, FAULTS, HANGS, REFUSED, WELL, Place, group_of, in_place
from tests.sim.virtual.virtual_time import elapse

VOLCANO = kinds.VOLCANO_POD_GROUPS
# A pod that names the group `g` of each kind, and what it says while these cannot be listed. Not Workloads: pods of the
# embedded server's version name none (`tests/api/gangs/test_resolver.py` has their sentence).
NAMING: dict[ApiResource, tuple[dict[str, Any], str]] = {
    kinds.POD_GROUPS: ({"spec": {"schedulingGroup": {"podGroupName": "g"}}}, "PodGroups of scheduling.k8s.io"),
    kinds.COSCHEDULING_POD_GROUPS: (
        {"labels": {"scheduling.x-k8s.io/pod-group": "g"}},
        "PodGroups of scheduling.x-k8s.io",
    ),
    VOLCANO: ({"labels": {"scheduling.k8s.io/group-name": "g"}}, "PodGroups of scheduling.volcano.sh"),
}
KINDS = [pytest.param(each, id=str(each)) for each in WATCHED_KINDS if each in OPTIONAL]
GROUPS = [pytest.param(each, id=str(each)) for each in NAMING]


@pytest.mark.parametrize("resource", KINDS)
def test_without_any_optional_kind_a_plain_pod_is_placed(resource: ApiResource) -> None:
    async def story(place: Place) -> None:
        await elapse(10)
        assert place.bound() == ["plain"]
        code, text = place.readyz()
        assert code == 200
        assert "[+]informer-sync ok\n" in text
        assert f"\nwarn: optional kinds cannot be listed or watched: {resource}\n" in text
        assert await place.synced(kind_name(resource.kind, resource.group)) == 0
        assert await place.synced("Pod") == 1
        place.served.state = ABSENT
        await elapse(30)
        assert "warn" not in place.readyz()[1]
        assert await place.synced(kind_name(resource.kind, resource.group)) == 1

    in_place(resource, REFUSED, story)


@pytest.mark.parametrize("fault", FAULTS)
def test_however_it_fails_only_the_pods_that_name_it_wait(fault: str) -> None:
    async def story(place: Place) -> None:
        place.pod("member", NAMING[VOLCANO][0])
        place.pod("other")
        await elapse(100)
        assert place.bound() == ["other", "plain"]
        assert place.why("member") == "waiting for PodGroups of scheduling.volcano.sh, which cannot be listed"
        assert str(VOLCANO) in place.readyz()[1]
        place.served.objects, place.served.state = [group_of(VOLCANO)], WELL
        await elapse(150)
        assert place.bound() == ["member", "other", "plain"]
        assert "warn" not in place.readyz()[1]

    in_place(VOLCANO, fault, story)


@pytest.mark.parametrize("resource", GROUPS)
def test_a_pod_that_names_a_group_of_a_kind_that_cannot_be_listed_says_so(resource: ApiResource) -> None:
    async def story(place: Place) -> None:
        place.pod("member", NAMING[resource][0])
        await elapse(30)
        assert place.why("member") == f"waiting for {NAMING[resource][1]}, which cannot be listed"
        place.served.objects, place.served.state = [group_of(resource)], WELL
        await elapse(30)
        assert place.bound() == ["member", "plain"]

    in_place(resource, REFUSED, story)


def test_a_kind_that_breaks_later_keeps_what_is_known_and_says_what_is_not() -> None:
    async def story(place: Place) -> None:
        place.pod("member", NAMING[VOLCANO][0])
        await elapse(10)
        assert place.bound() == ["member", "plain"]
        place.served.breaks(REFUSED)
        await elapse(30)
        assert "warn: optional kinds" in place.readyz()[1]
        assert await place.synced("PodGroup.scheduling.volcano.sh") == 0
        place.pod("second", NAMING[VOLCANO][0])  # its group is known
        place.pod("third", {"labels": {"scheduling.k8s.io/group-name": "new"}})
        await elapse(30)
        assert place.bound() == ["member", "plain", "second"]
        assert place.why("third") == "waiting for PodGroups of scheduling.volcano.sh, which cannot be listed"
        place.served.objects.append(group_of(VOLCANO, "new"))
        place.served.state = WELL
        place.scheduler.watches.reflectors[WATCHED_KINDS.index(VOLCANO)].relist()
        await elapse(30)
        assert place.bound() == ["member", "plain", "second", "third"]
        assert "warn" not in place.readyz()[1]

    async def well(place: Place) -> None:
        place.served.objects = [group_of(VOLCANO)]
        place.scheduler.watches.reflectors[WATCHED_KINDS.index(VOLCANO)].relist()
        await elapse(5)
        await story(place)

    in_place(VOLCANO, WELL, well)


def test_a_kind_that_is_installed_later_is_found_within_a_minute_or_so() -> None:
    async def story(place: Place) -> None:
        place.pod("member", NAMING[VOLCANO][0])
        await elapse(20)
        assert place.why("member") == "waiting for PodGroup.scheduling.volcano.sh default/g to appear"
        assert "warn" not in place.readyz()[1]
        place.served.objects, place.served.state = [group_of(VOLCANO)], WELL
        await elapse(90)
        assert place.bound() == ["member", "plain"]

    in_place(VOLCANO, ABSENT, story)


def test_a_kind_that_is_installed_broken_and_removed_again_is_no_trouble() -> None:
    async def story(place: Place) -> None:
        place.pod("member", NAMING[VOLCANO][0])
        place.served.state = REFUSED
        await elapse(100)
        assert place.why("member") == "waiting for PodGroups of scheduling.volcano.sh, which cannot be listed"
        place.served.state = ABSENT
        await elapse(30)
        assert place.why("member") == "waiting for PodGroup.scheduling.volcano.sh default/g to appear"
        assert "warn" not in place.readyz()[1]

    in_place(VOLCANO, ABSENT, story)


@pytest.mark.parametrize("fault", [HANGS, REFUSED])
def test_claims_that_stop_being_served_do_not_keep_a_new_leader_from_other_pods(fault: str) -> None:
    """A new leader waits until it has seen what the last one wrote, claims included, but not for ever."""

    async def story(place: Place) -> None:
        await elapse(10)
        place.served.breaks(fault)
        await elapse(5)
        before = place.world.clock.now()
        await place.scheduler.watches.wait_until_current()
        assert place.world.clock.now() - before <= 6.0
        place.pod("other")
        place.pod("claims", {"spec": {"resourceClaims": [{"name": "gpu", "resourceClaimName": "g"}]}})
        await elapse(30)
        assert place.bound() == ["other", "plain"]
        assert "the API server does not list resource claims" in place.why("claims")
        assert str(kinds.RESOURCE_CLAIMS) in place.readyz()[1]
        place.served.state = WELL
        await elapse(200)
        assert str(kinds.RESOURCE_CLAIMS) not in place.readyz()[1]
        assert 'could not find ResourceClaim "default/g"' in place.why("claims")

    in_place(kinds.RESOURCE_CLAIMS, WELL, story)
