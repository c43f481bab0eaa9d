"""What a decision promises to claims: nobody else gets it, until the API server says otherwise or the pod is gone."""

import msgspec
import pytest

from kubenexus.api.core import Pod
from kubenexus.api.storage import PersistentVolume, PersistentVolumeClaim
from kubenexus.base.errors import KubeNexusError
from kubenexus.framework.job import Job
from kubenexus.plan.decide import commit
from kubenexus.state.ledger import Ledger
from kubenexus.testing.builders import HOSTNAME, ZONE, a_node
from kubenexus.testing.harness import on_node
from tests.volumes.builders import a_claim, a_class, a_mounting_pod, a_volume, told
from tests.volumes.plugin_fixture import Scheduler, cluster, picked

LOCAL = a_class("local", by="kubernetes.io/no-provisioner")
A, B = a_node("a1", zone="a"), a_node("b1", zone="b")


def waiting(number: int) -> list[PersistentVolumeClaim]:
    return [a_claim(f"c{i}", of="local") for i in range(number)]


def pod(i: int, *more: str) -> Pod:
    return a_mounting_pod(f"p{i}", f"c{i}", *more)


def one_volume(*nodes: object) -> Scheduler:
    """Two pods want a volume, and there is one."""
    return Scheduler(cluster([A, B], LOCAL, *waiting(3), a_volume("pv", of="local")))


def shelf(ledger: Ledger, name: str = "local") -> set[str]:
    return {thing.name for thing, *_ in ledger.nodes.volumes.stock.pool(name).volumes._things.values()}


def test_an_assignment_names_the_volumes_and_the_claims_to_provision() -> None:
    known = [LOCAL, a_class(), *waiting(1), a_claim("made"), a_volume("pv", of="local", on={ZONE: "b"})]
    decision = Scheduler(cluster([A, B], *known)).decide(a_mounting_pod("p", "made", "c0"))
    (placement,) = decision.placements
    assert placement.node == "b1"
    assert sorted(placement.assignment.volumes) == [(1, ""), (2, "pv")]  # by the places of the pod's volumes


def test_a_bound_claim_needs_no_assignment() -> None:
    decision = Scheduler(cluster([A], a_claim("c0", volume="pv"), a_volume("pv", claim="c0"))).decide(pod(0))
    assert picked(decision) == [[]]


def test_of_two_pods_that_race_for_a_volume_one_gets_it() -> None:
    scheduler = one_volume()
    assert picked(scheduler.place(pod(0))) == [["pv"]]
    refusal = scheduler.decide(pod(1))
    assert not refusal.placed
    assert refusal.sentence() == "0/2 nodes are available: 2 node(s) didn't find available persistent volumes to bind."


def test_members_of_one_job_do_not_take_the_same_volume() -> None:
    scheduler = one_volume()
    assert not scheduler.decide(pod(0), pod(1)).placed
    assert shelf(scheduler.ledger) == {"pv"}  # a decision changes nothing
    assert picked(scheduler.decide(pod(0), pod(1), minimum=1)) == [["pv"]]
    told(scheduler.ledger, a_volume("pw", of="local", size="5Gi"))
    assert picked(scheduler.place(pod(0), pod(1))) == [["pv"], ["pw"]]
    assert shelf(scheduler.ledger) == set()


def test_a_volume_is_free_again_when_the_bind_failed() -> None:
    scheduler = one_volume()
    scheduler.place(pod(0))
    scheduler.ledger.forget("default/p0")
    assert picked(scheduler.place(pod(1))) == [["pv"]]


def test_a_volume_is_free_again_when_the_pod_was_deleted_before_it_was_bound() -> None:
    scheduler = one_volume()
    scheduler.place(pod(0))
    scheduler.ledger.remove_pod("default/p0")
    assert picked(scheduler.place(pod(1))) == [["pv"]]


def test_a_promise_is_kept_from_assumed_to_bound() -> None:
    scheduler = one_volume()
    node = scheduler.place(pod(0)).placements[0].node
    scheduler.ledger.upsert_pod(on_node(pod(0), node))  # the watch of pods is ahead of that of volumes
    assert shelf(scheduler.ledger) == set()
    told(scheduler.ledger, a_volume("pv", of="local", claim="c0"), a_claim("c0", of="local", volume="pv"))
    assert shelf(scheduler.ledger) == set()
    assert scheduler.ledger.nodes.volumes.stock._promises == {}


def test_a_promise_is_kept_when_the_pod_changes_while_it_is_bound() -> None:
    scheduler = one_volume()
    node = scheduler.place(pod(0)).placements[0].node
    labelled = msgspec.structs.replace(pod(0).metadata, labels={"bound": "yes"})
    scheduler.ledger.upsert_pod(on_node(msgspec.structs.replace(pod(0), metadata=labelled), node))
    assert shelf(scheduler.ledger) == set()


def test_the_api_server_may_give_the_claim_another_volume() -> None:
    scheduler = one_volume()
    scheduler.place(pod(0))
    told(scheduler.ledger, a_volume("other", of="local", claim="c0"), a_claim("c0", of="local", volume="other"))
    assert picked(scheduler.place(pod(1))) == [["pv"]]


def test_the_api_server_may_give_the_volume_to_another_claim() -> None:
    scheduler = one_volume()
    scheduler.place(pod(0))
    told(scheduler.ledger, a_volume("pv", of="local", claim="c2"))
    assert not scheduler.decide(pod(1)).placed
    assert picked(scheduler.place(pod(2))) == [["pv"]]


def test_a_second_pod_with_the_same_claim_goes_by_the_promise() -> None:
    volumes = [a_volume("pv", of="local", on={ZONE: "b"}), a_volume("pw", of="local", on={ZONE: "a"}, size="2Gi")]
    scheduler = Scheduler(cluster([A, B], LOCAL, *waiting(1), *volumes))
    first = scheduler.place(a_mounting_pod("first", "c0"))
    second = scheduler.place(a_mounting_pod("second", "c0"))
    assert picked(first) == picked(second)
    assert first.placements[0].node == second.placements[0].node
    scheduler.ledger.forget("default/first")
    assert len(shelf(scheduler.ledger)) == 1  # the second still stands on it
    scheduler.ledger.forget("default/second")
    assert shelf(scheduler.ledger) == {"pv", "pw"}


def test_pods_that_share_a_claim_to_be_provisioned_go_to_one_node() -> None:
    scheduler = Scheduler(cluster([A, B], a_class(), a_claim("shared")))
    nodes = {scheduler.place(a_mounting_pod(f"p{i}", "shared")).placements[0].node for i in range(4)}
    assert len(nodes) == 1


def test_a_claim_whose_provisioning_failed_may_go_elsewhere_when_its_pod_is_forgotten() -> None:
    scheduler = Scheduler(cluster([A, B], a_class(), a_claim("c0")))
    node = scheduler.place(pod(0)).placements[0].node
    told(scheduler.ledger, a_claim("c0", selected=node), a_claim("c0"))  # written, and taken back
    scheduler.ledger.forget("default/p0")
    scheduler.ledger.remove_node(node)
    assert scheduler.decide(pod(0)).placed


def test_a_claim_that_is_deleted_meanwhile_refuses_the_pod() -> None:
    scheduler = one_volume()
    assert scheduler.decide(pod(0)).placed
    scheduler.ledger.remove_storage(PersistentVolumeClaim, "default/c0")
    assert scheduler.decide(pod(0)).sentence() == ('0/2 nodes are available: persistentvolumeclaim "c0" not found.')


def test_a_claim_that_is_deleted_after_the_promise_leaves_nothing_behind() -> None:
    scheduler = one_volume()
    scheduler.place(pod(0))
    scheduler.ledger.remove_storage(PersistentVolumeClaim, "default/c0")
    scheduler.ledger.forget("default/p0")
    assert picked(scheduler.place(pod(1))) == [["pv"]]


def test_a_decision_is_not_committed_when_storage_changed_after_it() -> None:
    scheduler = one_volume()
    decision = scheduler.decide(pod(0))
    scheduler.ledger.remove_storage(PersistentVolume, "pv")
    with pytest.raises(KubeNexusError, match="generation"):
        commit(decision, Job.of(pod(0)), scheduler.ledger, 0.0)


def test_an_event_that_changes_nothing_does_not_make_decisions_stale() -> None:
    scheduler = one_volume()
    decision = scheduler.decide(pod(0))
    again = a_volume("pv", of="local")
    newer = msgspec.structs.replace(again, metadata=msgspec.structs.replace(again.metadata, resource_version="9"))
    told(scheduler.ledger, newer)
    commit(decision, Job.of(pod(0)), scheduler.ledger, 0.0)


def test_a_promise_ends_with_the_node_and_comes_back_with_it() -> None:
    scheduler = one_volume()
    node = scheduler.place(pod(0)).placements[0].node
    scheduler.ledger.remove_node(node)
    assert shelf(scheduler.ledger) == {"pv"}
    scheduler.ledger.upsert_node(A if node == "a1" else B)
    assert shelf(scheduler.ledger) == set()


def test_a_volume_that_somebody_got_meanwhile_is_not_promised_twice() -> None:
    scheduler = one_volume()
    node = scheduler.place(pod(0)).placements[0].node
    scheduler.ledger.remove_node(node)
    assert picked(scheduler.place(pod(1))) == [["pv"]]
    scheduler.ledger.upsert_node(A if node == "a1" else B)
    scheduler.ledger.forget("default/p0")
    assert shelf(scheduler.ledger) == set()
    scheduler.ledger.forget("default/p1")
    assert shelf(scheduler.ledger) == {"pv"}


def test_many_pods_find_many_local_volumes_one_each() -> None:
    nodes = [a_node(f"n{i}") for i in range(8)]
    volumes = [a_volume(f"pv{i}", of="local", on={HOSTNAME: f"n{i % 8}"}) for i in range(16)]
    scheduler = Scheduler(cluster(nodes, LOCAL, *waiting(17), *volumes))
    decisions = [scheduler.place(pod(i)) for i in range(16)]
    got = {picked(decision)[0][0]: decision.placements[0].node for decision in decisions}
    assert got == {f"pv{i}": f"n{i % 8}" for i in range(16)}
    assert not scheduler.decide(pod(16)).placed
