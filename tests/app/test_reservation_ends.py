"""A reservation ends with its time, its gang, its namespace or its scheduler. Other jobs then use all of its nodes."""

from collections.abc import Callable

import msgspec
import pytest

from kubenexus.api.core import Pod
from kubenexus.api.meta import ObjectMeta
from kubenexus.api.workloads import Namespace
from kubenexus.testing.builders import a_node, a_pod
from tests.api.gangs.builders import a_member
from tests.app.decision_fixture import GOES, DecisionFixture

PATIENCE = 300.0  # reservationSeconds
MEMBERS = ("ml/llama-0", "ml/llama-1", "ml/llama-2")
OTHERS = 4  # CPUs that are free and kept for the gang

End = Callable[[DecisionFixture], DecisionFixture]


def waiting() -> DecisionFixture:
    """Three nodes of two CPUs, one of them taken for good; a gang waits that needs all three."""
    fixture = DecisionFixture(PATIENCE)
    fixture.nodes(*(a_node(f"n{i}", cpu=2) for i in range(3)))
    fixture.come(a_pod("busy", cpu=2, node="n0"))
    fixture.come(*(a_member(f"llama-{i}", "llama", 3, namespace="ml", cpu=2) for i in range(3)))
    fixture.work()
    return fixture


def others(name: str) -> list[Pod]:
    return [a_pod(f"{name}-{i}", cpu=1) for i in range(OTHERS)]


def time_passes(fixture: DecisionFixture) -> DecisionFixture:
    fixture.clock.advance(PATIENCE)
    return fixture


def gang_deleted(fixture: DecisionFixture) -> DecisionFixture:
    fixture.end(*MEMBERS)
    return fixture


def members_terminate(fixture: DecisionFixture) -> DecisionFixture:
    """They are being deleted, and a finalizer keeps them."""
    fixture.come(*(leaving(fixture.pods[key]) for key in MEMBERS))
    return fixture


def namespace_deleted(fixture: DecisionFixture) -> DecisionFixture:
    """Kubernetes marks the namespace, deletes its pods, and the namespace is gone with the last of them."""
    meta = ObjectMeta(name="ml")
    fixture.handlers.objects.on_update("Namespace", Namespace(metadata=meta))
    fixture.work()
    fixture.handlers.objects.on_update(
        "Namespace", Namespace(metadata=msgspec.structs.replace(meta, deletion_timestamp=GOES))
    )
    fixture.work()
    fixture.end(*MEMBERS)
    fixture.handlers.objects.on_delete("Namespace", "ml")
    return fixture


def restarted(fixture: DecisionFixture) -> DecisionFixture:
    """Another process reads what the server has. A reservation is no part of that."""
    after = DecisionFixture(PATIENCE)
    after.nodes(*(a_node(f"n{i}", cpu=2) for i in range(3)))
    after.come(*fixture.pods.values())
    return after


def restarted_without_it(fixture: DecisionFixture) -> DecisionFixture:
    """The gang is deleted while no scheduler runs."""
    for key in MEMBERS:
        del fixture.pods[key]
    return restarted(fixture)


def leaving(pod: Pod) -> Pod:
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, deletion_timestamp=GOES))


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(time_passes, id="its time is over"),
        pytest.param(gang_deleted, id="its gang is deleted"),
        pytest.param(members_terminate, id="its gang is being deleted"),
        pytest.param(namespace_deleted, id="its namespace is deleted"),
        pytest.param(restarted, id="the scheduler starts again"),
        pytest.param(restarted_without_it, id="its gang is deleted while no scheduler runs"),
    ],
)
def test_f38_a_reservation_ends_and_its_nodes_are_used_by_others(end: End) -> None:
    """Jobs that waited for it fill the nodes to the last CPU, without another event."""
    fixture = waiting()
    fixture.come(*others("late"))
    fixture.work()
    assert fixture.where("late") == {}, "the room is kept for the gang"
    after = end(fixture)
    after.work()
    assert sorted(after.where("late").values()) == ["n1", "n1", "n2", "n2"]
    assert after.where("llama") == {}


@pytest.mark.parametrize("again", [False, True], ids=["", "after a restart"])
def test_f38_once_its_time_is_over_nothing_is_kept_while_others_have_their_turn(again: bool) -> None:
    """The gang still waits, and is still the first. It starts when there is room."""
    fixture = restarted(waiting()) if again else waiting()
    fixture.work()
    fixture.come(*others("late"))
    fixture.work()
    assert fixture.where("late") == {}, "a scheduler that has started again gives the gang its turn"
    time_passes(fixture).work()
    for number in range(10):
        assert len(fixture.where("late")) == OTHERS
        fixture.clock.advance(PATIENCE / 10)
        fixture.end(*fixture.where("late"))
        fixture.come(*others(f"late-{number}"))
        fixture.work()
    fixture.end(*fixture.where("late"), "busy")
    fixture.work()
    assert len(fixture.where("llama")) == 3
