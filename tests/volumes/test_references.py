"""After any events, each rule about volumes says of each node what its naive twin says, from cached tables that were
repaired and never made anew; and what is counted is what one would count from scratch."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kubenexus.api.core import Pod
from kubenexus.api.storage import CSINode, CSIStorageCapacity, PersistentVolume
from tests.volumes.builders import DRIVER
from tests.volumes.model import Model
from tests.volumes.random_storage import CLASSES, EBS_DRIVER, PODS, RandomStorage
from tests.volumes.reference import NodeVolumeLimits

seeds, lengths = st.integers(0, 2**32), st.integers(0, 16)


def tell(model: Model, known: dict[str, Pod], event: Any) -> None:
    kind, *about = event
    if kind in ("bound", "schedule", "forget", "gone"):
        about[0] = known[about[0]]
    getattr(model, kind)(*about)


def begun(random_storage: RandomStorage) -> tuple[Model, dict[str, Pod]]:
    """A cluster, and pods that stay what they are whatever happens to them."""
    model, known = Model(), {name: random_storage.pod(name) for name in PODS}
    for event in random_storage.start():
        tell(model, known, event)
    return model, known


@given(seed=seeds, length=lengths)
def test_rules_say_of_each_node_what_their_twins_say(seed: int, length: int) -> None:
    random_storage = RandomStorage(seed)
    model, known = begun(random_storage)
    for _ in range(length + 1):
        for name in random_storage.sample(PODS, 3):
            model.compare(known[name])
        tell(model, known, random_storage.event())


@given(seed=seeds, length=lengths)
def test_what_is_counted_is_what_one_counts_from_scratch(seed: int, length: int) -> None:
    random_storage = RandomStorage(seed)
    model, known = begun(random_storage)
    for _ in range(4 * length):
        tell(model, known, random_storage.event())
    assert_counts(model)
    assert_shelves(model)
    for pod in known.values():
        model.gone(pod)
    users = model.ledger.nodes.volumes.users
    assert (users._of, users.disks._rows, model.ledger.nodes.volumes.drivers.mounted) == ({},) * 3


def assert_counts(model: Model) -> None:
    """Of each driver on each node that has drivers at all."""
    columns, world, twin = model.ledger.nodes, model.world, NodeVolumeLimits()
    for name, row in columns.row_of.items():
        csi_node = world.get(CSINode, name)
        if csi_node is None:
            continue
        used: set[Any] = set()
        for pod in world.pods_on(name):
            used |= twin.volumes(pod, csi_node, world, new=False).keys()
        there = used | twin.attached(name, world).keys()
        for driver in (DRIVER, EBS_DRIVER):
            counted = int(columns.volumes.drivers.of(driver).count[row])
            assert counted == sum(1 for each, _ in there if each == driver)


def assert_shelves(model: Model) -> None:
    stock, world = model.ledger.nodes.volumes.stock, model.world
    promised = {promise.volume for promise in world.promises.values()}
    for name in CLASSES:
        shelf = stock.pool(name)
        on_shelf = {thing.name for thing, *_ in shelf.volumes._things.values()}
        volumes = [v for v in world.all(PersistentVolume) if v.spec.storage_class_name == name]
        free = [v for v in volumes if v.spec.claim_ref is None and v.status.phase == "Available"]
        assert on_shelf == {v.metadata.name for v in free if not v.metadata.deletion_timestamp} - promised
        capacities = [c for c in world.all(CSIStorageCapacity) if c.storage_class_name == name]
        sized = {c.metadata.key for c in capacities if (c.capacity or c.maximum_volume_size) is not None}
        assert {thing.key for thing, *_ in shelf.capacities._things.values()} == sized
    assert stock._promises.keys() == world.promises.keys()
