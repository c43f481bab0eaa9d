"""Members of a gang: those that are equal are signed once, and later only those that changed."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.api.core import ClaimVolume, EphemeralVolume, Pod, Volume
from kubenexus.api.meta import OwnerReference
from kubenexus.framework.job import Job
from kubenexus.queue.job_signature import MAX_TEMPLATES, sign_job
from kubenexus.queue.member_signatures import MemberSignatures, SignatureRule, digest, member_values
from kubenexus.testing.builders import a_pod
from tests.queue.queue_fixture import QueueFixture

MEMBERS = 50
DATA = Volume(name="data", persistent_volume_claim=ClaimVolume(claim_name="data"))
SCRATCH = Volume(name="scratch", ephemeral=EphemeralVolume())


class Signer:
    """Signs by content, and counts."""

    def __init__(self) -> None:
        self.signed: list[str] = []

    def __call__(self, pod: Pod) -> bytes:
        self.signed.append(pod.metadata.name)
        meta = pod.metadata
        return repr((meta.labels, meta.annotations, meta.owner_references, pod.spec.containers)).encode()


def changed(pod: Pod, **metadata: Any) -> Pod:
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, **metadata))


def template(*volumes: Volume, cpu: int = 1) -> Pod:
    pod = a_pod("template", labels={"app": "x"}, cpu=cpu)
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, volumes=list(volumes)))


def members(first: Pod, number: int = MEMBERS) -> tuple[Pod, ...]:
    """Pods that share a spec, as pods from the watch do."""
    return tuple(changed(first, name=f"m{i}", uid=f"m{i}", labels={**first.metadata.labels}) for i in range(number))


def test_equal_members_are_signed_once() -> None:
    sign = Signer()
    MemberSignatures().digests(members(template()), SignatureRule(sign, by_content=True), None)
    assert sign.signed == ["m0"]


@pytest.mark.parametrize(
    ("by_content", "context", "again"),
    [
        pytest.param(True, "same", ["m7"], id="only the one that changed"),
        pytest.param(True, "other", ["m0", "m7"], id="all sorts in another context"),
        pytest.param(False, "same", [f"m{i}" for i in range(MEMBERS)], id="each if a plugin may read anything"),
    ],
)
def test_members_are_signed_again(by_content: bool, context: str, again: list[str]) -> None:
    sign, kept, pods = Signer(), MemberSignatures(), members(template())
    rule = SignatureRule(sign, by_content)
    kept.digests(pods, rule, "same")
    sign.signed.clear()
    kept.digests((*pods[:7], changed(pods[7], labels={"app": "y"}), *pods[8:]), rule, context)
    assert sign.signed == again


def test_members_with_claims_are_signed_again_each_time() -> None:
    """What plugins sign of a claim may change with the claim."""
    sign, kept, pods = Signer(), MemberSignatures(), members(template(DATA))
    for _ in range(2):
        kept.digests(pods, SignatureRule(sign, by_content=True), None)
    assert sign.signed == ["m0", "m0"]


def test_a_large_gang_with_a_claim_for_each_member_is_like_no_other_and_not_signed() -> None:
    sign, pods = Signer(), members(template(SCRATCH), MAX_TEMPLATES + 1)
    sign_job(Job("default/gang/g", pods, 1), SignatureRule(sign, by_content=True))
    assert not sign.signed


def test_a_queue_signs_what_changed_and_everything_for_another_tier() -> None:
    sign, pods = Signer(), members(template())
    fixture = QueueFixture(sign=sign, by_content=True)
    fixture.queue.add(Job("default/gang/g", pods, 1), 0.0)
    assert sign.signed == ["m0"]
    sign.signed.clear()
    fixture.queue.add(Job("default/gang/g", (*pods[:7], changed(pods[7], labels={"app": "y"}), *pods[8:]), 1), 0.0)
    assert sign.signed == ["m7"]
    sign.signed.clear()
    fixture.queue.on_tenant_change("default")
    fixture.queue.tick()
    assert sign.signed == ["m0", "m7"]


SPECS = [template(cpu=1), template(cpu=2)]
OWNERS = [[], [OwnerReference(kind="Job", name="j", uid="u", controller=True)]]


@st.composite
def a_member(draw: st.DrawFn) -> Pod:
    meta = {
        "name": draw(st.sampled_from("abc")),
        "labels": draw(st.dictionaries(st.sampled_from("xy"), st.sampled_from("12"))),
        "annotations": draw(st.dictionaries(st.sampled_from("xy"), st.sampled_from("12"), max_size=1)),
        "owner_references": draw(st.sampled_from(OWNERS)),
        "namespace": draw(st.sampled_from(["default", "other"])),
    }
    pod = changed(draw(st.sampled_from(SPECS)), **meta)
    status = msgspec.structs.replace(pod.status, nominated_node_name=draw(st.sampled_from(["", "n"])))
    return msgspec.structs.replace(pod, status=status)


@given(st.lists(st.lists(a_member(), max_size=12), max_size=4), st.data())
def test_the_signatures_are_those_of_each_member_alone(gangs: list[list[Pod]], data: st.DataObject) -> None:
    kept, before = MemberSignatures(), list[Pod]()
    for gang in gangs:
        stays = data.draw(st.lists(st.sampled_from(before), max_size=8)) if before else []
        pods = (*stays, *gang)
        found = kept.digests(pods, SignatureRule(Signer(), by_content=True), None)
        assert found == [digest(member_values(pod, Signer())) for pod in pods]
        before = list(pods)
