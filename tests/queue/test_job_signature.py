"""Signatures of gangs of very many templates: none is signed, and a changed member is a changed signature."""

import msgspec

from kubenexus.api.core import Pod
from kubenexus.framework.job import Job
from kubenexus.queue.job_signature import MAX_TEMPLATES, sign_job
from kubenexus.testing.builders import a_pod


def a_gang(number: int) -> Job:
    pods = tuple(a_pod(f"m{i}", image=f"image-{i}") for i in range(number))
    return Job("default/gang/g", pods, number)


def unsigned(pod: Pod) -> bytes:
    raise AssertionError("a member is signed")


def test_members_of_few_templates_are_signed() -> None:
    signed: list[str] = []
    sign_job(a_gang(3), lambda pod: signed.append(pod.metadata.name) or b"")  # type: ignore[func-returns-value]
    assert signed == ["m0", "m1", "m2"]


def test_a_gang_of_more_templates_is_like_no_other() -> None:
    gang = a_gang(MAX_TEMPLATES + 1)
    first = sign_job(gang, unsigned)
    assert sign_job(gang, unsigned) == first
    assert sign_job(msgspec.structs.replace(gang, key="default/gang/other"), unsigned).digest != first.digest


def test_a_changed_member_changes_the_signature() -> None:
    gang = a_gang(MAX_TEMPLATES + 1)
    meta = msgspec.structs.replace(gang.pods[7].metadata, resource_version="8")
    pods = (*gang.pods[:7], msgspec.structs.replace(gang.pods[7], metadata=meta), *gang.pods[8:])
    assert sign_job(msgspec.structs.replace(gang, pods=pods), unsigned).digest != sign_job(gang, unsigned).digest
