"""Claims with many users: no step takes time that grows with the number of users."""

import pytest

from kubenexus.api.storage import CSINode
from kubenexus.state.ledger import Ledger
from kubenexus.state.volumes.csi_translation import AttachedVolume
from kubenexus.testing.builders import a_node
from tests.volumes.builders import DRIVER, a_claim, a_class, a_csi_node, a_mounting_pod, a_volume, told
from tests.volumes.plugin_fixture import cluster

PODS = 50


def shared(*claims: object) -> Ledger:
    pods = [a_mounting_pod(f"p{i}", "c", node=f"n{i % 2}", uid=f"u{i}") for i in range(PODS)]
    nodes = [a_node("n0"), a_node("n1")]
    return cluster(nodes, a_class(), *claims, *(a_csi_node(f"n{i}", {DRIVER: 9}) for i in range(2)), pods=pods)


def counts(ledger: Ledger) -> list[int]:
    rows = [ledger.nodes.row_of[f"n{i}"] for i in range(2)]
    return ledger.nodes.volumes.drivers.of(DRIVER).count[rows].tolist()


def test_users_are_kept_as_numbers_by_row() -> None:
    ledger = shared(a_claim("c"))
    users = ledger.nodes.volumes.users
    assert list(users._of["default/c"].values()) == [PODS // 2, PODS // 2]
    assert counts(ledger) == [1, 1]
    for i in range(2, PODS):
        ledger.remove_pod(f"default/p{i}")
    assert list(users._of["default/c"].values()) == [1, 1]
    assert counts(ledger) == [1, 1]
    ledger.remove_pod("default/p0")
    assert counts(ledger) == [0, 1]
    ledger.remove_pod("default/p1")
    assert (counts(ledger), users._of) == ([0, 0], {})


def test_a_change_that_attaches_no_other_volume_counts_no_user_again(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = shared(a_claim("c"))
    drivers = ledger.nodes.volumes.drivers
    mount, moved = drivers.mount, list[int]()

    def counted(row: int, attachment: AttachedVolume, pods: int) -> None:
        moved.append(pods)
        mount(row, attachment, pods)

    monkeypatch.setattr(drivers, "mount", counted)
    told(ledger, a_claim("c", selected="n0"))
    assert moved == []
    told(ledger, a_volume("pv", claim="c"), a_claim("c", volume="pv"))
    assert sorted(moved) == [-PODS // 2, -PODS // 2, PODS // 2, PODS // 2], "once for each row, not for each pod"
    assert counts(ledger) == [1, 1]
    ledger.remove_storage(CSINode, "n0")
    for i in range(PODS):
        ledger.remove_pod(f"default/p{i}")
    assert drivers.mounted == {}
