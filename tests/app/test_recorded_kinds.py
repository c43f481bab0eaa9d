"""Every change of the ledger is recorded: a method or a kind that is added later cannot be forgotten."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from kubenexus.api.meta import ObjectMeta
from kubenexus.app.recording.entries import SCHEMA, Header, decode_entry
from kubenexus.app.recording.recorded_ledger import RecordedGroups, RecordedLedger, RecordedQueues, RecordedTenants
from kubenexus.app.recording.recorder import FlightRecorder
from kubenexus.app.recording.segments import SegmentWriter, read_entries, segment_files
from kubenexus.explain.replay_recording import entries_of, replay
from kubenexus.state.demand import Demand, DemandShape, SlotDemand
from kubenexus.state.ledger import Ledger
from kubenexus.state.object_kinds import KINDS, apply_object
from kubenexus.state.pod_group_store import PodGroupStore
from kubenexus.state.queues.queue_tree import QueueTree
from kubenexus.state.tenants import Tenants

# Methods that change nothing that a decision depends on. What the others change must be recorded.
READS = {
    Ledger: """audit audit_query blocked_nodes devices_of has_unread_devices held_by is_blocked nominated_and_held
        nominated_node nominated_nodes nominees on_node snapshot take_node_warnings""",
    Tenants: "fields knows may_choose of of_fields scope states_tier take_changed take_warnings tier_source",
    PodGroupStore: "find listable problem take_changed unreadable_keys",
    QueueTree: """beyond_admitted by_tier closed_tiers has_tiers is_mapped is_outdated namespace namespaces on_node
        queue_of queues reached_limit refresh_all_shares refresh_shares settle take_warnings""",
}
# What other entries cover: placements are part of `commit`, namespaces and devices of the objects they are read from.
# `put_back` is for trials. `select_budgets` derives early what a decision derives when it needs it. The configuration
# has the queues of `fix`. What `pod_ended` learns reaches a decision as the reservation that it must respect, which is
# recorded as `ahead`.
COVERED = {
    Ledger: {"assume", "commit_records", "pod_ended", "put_back", "select_budgets", "transaction", "set_devices"},
    Tenants: {"set_namespace"},
    PodGroupStore: set[str](),
    QueueTree: {"count", "fix", "remove_queue", "set_namespace", "set_queue"},
}
NOT_RECORDED = {
    "PriorityClass": "no decision reads it",
    "ResourceReservation": "what takes effect of it is recorded as `reserve`",
}


@pytest.mark.parametrize(
    ("plain", "recorded"),
    [
        (Ledger, RecordedLedger),
        (Tenants, RecordedTenants),
        (PodGroupStore, RecordedGroups),
        (QueueTree, RecordedQueues),
    ],
)
def test_a_method_either_changes_nothing_or_is_recorded(plain: type, recorded: type) -> None:
    methods = {name for name in dir(plain) if not name.startswith("_") and not isinstance(getattr(plain, name), int)}
    changing = methods - set(READS[plain].split()) - COVERED[plain]
    own = {name for base in recorded.__mro__ for name in vars(base) if base is not plain and base in (recorded,)}
    assert changing - own == set()
    assert set(READS[plain].split()) <= methods, "a method that is gone"


def recorded_ledger(folder: Path) -> tuple[RecordedLedger, FlightRecorder]:
    recorder = FlightRecorder(SegmentWriter(folder, 1 << 20), Header(SCHEMA, "test"))
    return RecordedLedger(RecordedTenants((), recorder), recorder), recorder


def an_object(kind: str) -> Any:
    type_ = KINDS[kind].type
    names = {field.name for field in msgspec.structs.fields(type_)}
    meta = ObjectMeta(name="x", namespace="y", uid="u")
    assert "metadata" in names
    return type_(metadata=meta)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_an_object_of_each_kind_is_recorded_when_it_comes_and_when_it_goes(tmp_path: Path, kind: str) -> None:
    ledger, recorder = recorded_ledger(tmp_path)
    thing = an_object(kind)
    apply_object(ledger, kind, thing)
    KINDS[kind].gone(ledger, thing.metadata.key)
    recorder.close()
    entries = [decode_entry(payload) for payload in read_entries(segment_files(tmp_path)[0])]
    said = [(entry.operation, entry.about) for entry in entries if entry.operation in ("seen", "gone")]
    assert said == ([] if kind in NOT_RECORDED else [("seen", kind), ("gone", kind)])
    assert replay(entries_of(segment_files(tmp_path)), Ledger(), {}).decisions == 0


def test_a_demand_is_recorded_and_a_later_file_begins_with_it(tmp_path: Path) -> None:
    ledger, recorder = recorded_ledger(tmp_path)
    demand = Demand(1, ((DemandShape(1000, 1, 1000, ("A100",)), 1.0),), (SlotDemand(8, 1000, 12, 9, 500),))
    ledger.set_demand(demand)
    recorder._begin()
    recorder.close()
    for file in segment_files(tmp_path):
        replayed = Ledger()
        replay(entries_of([file]), replayed, {})
        assert replayed.nodes.demand == demand
