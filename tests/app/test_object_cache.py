"""What is kept of pods: those of one template share what they are made of, and nothing that counts is lost."""

from typing import Any

import msgspec

from kubenexus.api.core import ClaimVolume, Pod, PodCondition, PodStatus, Volume
from kubenexus.app.watch.object_cache import ObjectCache, with_shared_parts
from kubenexus.testing.builders import a_pod
from tests.app.scheduler_fixture import SchedulerFixture, scheduler_test

CLAIM = Volume(name="data", persistent_volume_claim=ClaimVolume(claim_name="data"))


def mounting(name: str, *volumes: Volume, **more: Any) -> Pod:
    pod = a_pod(name, cpu=1, phase="Pending", **more)
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, volumes=list(volumes)))


def token(name: str) -> Volume:
    return Volume(name=f"kube-api-access-{name}")


def test_pods_that_wait_share_the_spec_of_their_template_whatever_their_tokens_are_called() -> None:
    cache, pods = ObjectCache(), [mounting(name, token(name), annotations={"is": name}) for name in ("a", "b")]
    a, b = (with_shared_parts(pod, cache.stripped_pod(pod)) for pod in pods)
    assert a.spec is b.spec
    assert a.status is b.status
    assert [a.metadata, b.metadata] == [pod.metadata for pod in pods]


def test_beside_a_claim_every_volume_keeps_its_place() -> None:
    pod = mounting("a", token("a"), CLAIM)
    assert with_shared_parts(pod, ObjectCache().stripped_pod(pod)) == pod


def test_what_was_written_about_a_pod_that_waits_is_not_lost() -> None:
    told = PodStatus(phase="Pending", conditions=[PodCondition(type="PodScheduled", reason="Unschedulable")])
    pod = msgspec.structs.replace(a_pod("a"), status=told)
    assert with_shared_parts(pod, ObjectCache().stripped_pod(pod)) == pod


def test_a_pod_may_ask_for_a_number_beyond_any_machine() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes()
        fixture.handlers.on_pod_update(a_pod("a", requests={"cpu": 10**30}))
        fixture.handlers.on_pod_update(a_pod("b", requests={"cpu": 10**30 + 1}))
        assert fixture.handlers.cache.pods["default/a"].spec != fixture.handlers.cache.pods["default/b"].spec

    scheduler_test(life)
