"""The store of volumes: what is tentative is taken back exactly, the order of events does not matter, and what is
promised is in step with what is seen."""

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.api.storage import PersistentVolume, StorageObject
from kubenexus.base.errors import Malformed
from kubenexus.framework.job import Job
from kubenexus.state.ledger import Ledger
from kubenexus.testing.builders import HOSTNAME, ZONE, a_node
from tests.volumes.builders import DRIVER, a_claim, a_class, a_csi_node, a_mounting_pod, a_volume, told
from tests.volumes.model import Model
from tests.volumes.plugin_fixture import Scheduler, cluster
from tests.volumes.random_storage import CLASSES, EBS_DRIVER, KINDS, NODES, PODS, RandomStorage
from tests.volumes.test_references import begun, tell


def content(ledger: Ledger) -> Any:
    """All that a rule can see, by name."""
    columns, store = ledger.nodes, ledger.nodes.volumes
    drivers = {}
    for driver in (DRIVER, EBS_DRIVER):
        found = store.drivers.of(driver)
        drivers[driver] = {
            name: (int(found.count[row]), int(found.limit[row]), bool(found.installed[row]))
            for name, row in columns.row_of.items()
        }
    rows = {row: name for name, row in columns.row_of.items()}
    return (
        drivers,
        {a: {rows[row]: n for row, n in held.items()} for a, held in store.drivers.mounted.items()},
        {
            key: {(rows[row], owner): pods for (row, owner), pods in users.items()}
            for key, users in store.users._of.items()
        },
        {disk: {rows[r]: n for r, n in held.items()} for disk, held in store.users.disks._rows.items()},
        {name: sorted(store.stock.pool(name).volumes._things) for name in CLASSES},
        {key: (p.volume, p.node, p.holders) for key, p in store.stock._promises.items()},
        {name: bool(store.drivers.described[row]) for name, row in columns.row_of.items()},
    )


@given(seed=st.integers(0, 2**32))
def test_what_is_rolled_back_was_never_there(seed: int) -> None:
    random_storage = RandomStorage(seed)
    model, known = begun(random_storage)
    for _ in range(8):
        tell(model, known, random_storage.event())
    before, size = content(model.ledger), len(model.ledger.pods)
    free = [pod for pod in known.values() if pod.key not in model.world.placed]
    if len(free) > 1:
        model.planner.decide(Job("gang", tuple(free), 1), model.ledger.snapshot(), 0.0)
    assert content(model.ledger) == before
    assert len(model.ledger.pods) == size


@given(seed=st.integers(0, 2**32))
def test_the_order_of_events_does_not_matter(seed: int) -> None:
    random_storage = RandomStorage(seed)
    pods = {name: random_storage.pod(name) for name in PODS}
    events = [*random_storage.start(), *(("bound", name, random_storage.choice(NODES)) for name in PODS)]
    ledgers = []
    for _ in range(2):
        random_storage.shuffle(events)
        model = Model()
        for event in events:
            tell(model, pods, event)
        ledgers.append(content(model.ledger))
    assert ledgers[0] == ledgers[1]


def test_rows_grow_beyond_what_was_set_aside() -> None:
    limits = [a_csi_node(f"n{i}", {DRIVER: 1}) for i in range(100)]
    there = [a_mounting_pod(f"p{i}", f"c{i}", node=f"n{i}") for i in range(0, 100, 7)]
    claims = [a_claim(f"c{i}") for i in range(101)]
    ledger = cluster([], a_class(), *limits[:50], *claims)
    for i in range(100):
        ledger.upsert_node(a_node(f"n{i}"))
    told(ledger, *limits[50:])
    for pod in there:
        ledger.upsert_pod(pod)
    driver = ledger.nodes.volumes.drivers.of(DRIVER)
    assert driver.count[:100].tolist() == [int(i % 7 == 0) for i in range(100)]
    assert driver.limit[:100].tolist() == [1] * 100


def test_a_volume_that_cannot_be_read_leaves_everything_as_it_was() -> None:
    ledger = cluster([a_node("n")], a_class("local"), a_volume("pv", of="local"))
    before, generation = content(ledger), ledger.generation
    with pytest.raises(Malformed):
        told(ledger, a_volume("pv", of="local", size="a lot"))
    assert (content(ledger), ledger.generation) == (before, generation)


def overheard(scheduler: Scheduler) -> list[Any]:
    """The labels of the nodes that VolumeBinding is asked about from now on, for the only class on the bench."""
    matching = next(iter(scheduler.planner.class_cache._classes.values())).table.pod.compiled["VolumeBinding"]._matching
    asked, ask = [], matching.outcome

    def noted(labels: Any, *rest: Any) -> Any:
        asked.append(labels)
        return ask(labels, *rest)

    matching.outcome = noted
    return asked


def test_a_table_is_repaired_where_a_volume_was_taken_and_nowhere_else() -> None:
    local = a_class("local", by="kubernetes.io/no-provisioner")
    nodes = [a_node(f"n{i}", zone="a") for i in range(50)]
    volumes = [a_volume(f"pv{i}", of="local", on={HOSTNAME: f"n{i}"}) for i in range(50)]
    scheduler = Scheduler(cluster(nodes, local, *volumes, *(a_claim(f"c{i}", of="local") for i in range(11))))
    scheduler.place(a_mounting_pod("p0", "c0"))
    asked = overheard(scheduler)
    for i in range(1, 10):
        assert scheduler.place(a_mounting_pod(f"p{i}", f"c{i}")).placed
    assert len(asked) == 9  # one node each time, not fifty
    told(scheduler.ledger, a_volume("zonal", of="local", on={ZONE: "b"}))
    scheduler.ledger.upsert_node(a_node("n0", zone="b"))
    asked.clear()
    scheduler.decide(a_mounting_pod("p10", "c10"))
    assert len(asked) >= 50  # zones matter now: other groups


def test_nodes_that_come_one_by_one_are_worked_out_one_by_one() -> None:
    local = a_class("local", by="kubernetes.io/no-provisioner")
    volumes = [a_volume(f"pv{i}", of="local", on={HOSTNAME: f"n{i}"}) for i in range(30)]
    claims = [a_claim(f"c{i}", of="local") for i in range(10)]
    scheduler = Scheduler(cluster([a_node(f"n{i}") for i in range(20)], local, *volumes, *claims))
    scheduler.decide(a_mounting_pod("p0", "c0"))
    asked = overheard(scheduler)
    for i in range(20, 25):
        scheduler.ledger.upsert_node(a_node(f"n{i}"))
        scheduler.decide(a_mounting_pod("p0", "c0"))
    assert [labels[HOSTNAME] for labels in asked] == [f"n{i}" for i in range(20, 25)]


def relisted(ledger: Ledger, kind: type[StorageObject], things: Iterable[StorageObject]) -> list[Malformed]:
    """After a gap, as `app.watch.informers` tells it. Returns what could not be read."""
    problems, listed = list[Malformed](), list(things)
    for thing in listed:
        try:
            ledger.upsert_storage(thing)
        except Malformed as problem:
            problems.append(problem)
    for key in ledger.nodes.volumes.known(kind) - {thing.metadata.key for thing in listed}:
        ledger.remove_storage(kind, key)
    return problems


@given(seed=st.integers(0, 2**32))
def test_after_a_gap_a_list_says_it_all(seed: int) -> None:
    random_storage = RandomStorage(seed)
    missed, found = Model(), Model()
    start = random_storage.start()
    for event in start:
        tell(missed, {}, event)
        tell(found, {}, event)
    for _ in range(20):
        event = random_storage.event()
        if event[0].startswith("storage"):
            tell(found, {}, event)
    for kind in KINDS:
        assert relisted(missed.ledger, kind, found.world.all(kind)) == []
    assert content(missed.ledger) == content(found.ledger)


def test_in_a_list_one_bad_object_does_not_stop_the_others() -> None:
    ledger = cluster([], a_class("local"), a_volume("old", of="local"))
    listed = [a_volume("bad", size="a lot"), a_volume("good", of="local")]
    (problem,) = relisted(ledger, PersistentVolume, listed)
    assert problem.subject == "PersistentVolume bad"
    assert ledger.nodes.volumes.known(PersistentVolume) == {"good"}
