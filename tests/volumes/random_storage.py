"""Random storage and random events on a small cluster: few names, so that everything meets everything, and mostly sane
objects, so that more comes of it than refusals. All from a seed."""

from random import Random
from typing import Any

from kubenexus.api.core import Node, Pod
from kubenexus.api.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    StorageObject,
    VolumeAttachment,
)
from kubenexus.testing.builders import HOSTNAME, ZONE, a_node
from tests.volumes.builders import (
    DRIVER,
    a_capacity,
    a_claim,
    a_class,
    a_csi_node,
    a_driver,
    a_mounting_pod,
    a_volume,
    an_attachment,
)

EBS, EBS_DRIVER = "kubernetes.io/aws-ebs", "ebs.csi.aws.com"
CAPACITY_DRIVER = "cap.example.com"
REGION = "topology.kubernetes.io/region"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
EBS_ZONE = "topology.ebs.csi.aws.com/zone"

NODES = [f"n{i}" for i in range(4)]
PODS = [f"p{i}" for i in range(6)]
CLAIMS = [f"c{i}" for i in range(6)]
OWN_CLAIMS = ["p0-v0", "p1-v0"]  # as if made for ephemeral volumes
VOLUMES = [f"pv{i}" for i in range(8)]
SIZES = ["1Gi", "2Gi", "1500Mi", "5Gi"]
CLASSES = {
    "wait": [a_class("wait"), a_class("wait"), a_class("wait", by="kubernetes.io/no-provisioner")],
    "local": [a_class("local", by="kubernetes.io/no-provisioner")],
    "cap": [a_class("cap", by=CAPACITY_DRIVER), a_class("cap", by=CAPACITY_DRIVER, zones=["a", "b"])],
    "zonal": [a_class("zonal", zones=["a"]), a_class("zonal", zones=["b"])],
    "now": [a_class("now", mode="Immediate")],
    "odd": [a_class("odd", mode=None)],
    "old": [a_class("old", by=EBS)],
}
KINDS: list[Any] = [
    PersistentVolumeClaim,
    PersistentVolume,
    StorageClass,
    CSINode,
    CSIDriver,
    CSIStorageCapacity,
    VolumeAttachment,
]


def _term(key: str, *values: str, operator: str = "In") -> Any:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


_BOTH = {"matchExpressions": [*_term(ZONE, "a")["matchExpressions"], {"key": REGION, "operator": "Exists"}]}
_NAMED = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n0"]}]}
_REACHES: list[Any] = [
    None,
    None,
    [],
    [_term(ZONE, "a")],
    [_term(ZONE, "a", "b")],
    [_term(HOSTNAME, "n0")],
    [_term(HOSTNAME, "n1"), _term(HOSTNAME, "n2")],
    [_term(HOSTNAME, "n3")],
    [_BOTH],
    [_term(ZONE, "b", operator="NotIn")],
    [_NAMED],
]
_SOURCES: list[Any] = [
    {"ephemeral": {}},
    {"gcePersistentDisk": {"pdName": "d", "readOnly": True}},
    {"gcePersistentDisk": {"pdName": "d"}},
    {"awsElasticBlockStore": {"volumeID": "vol-1"}},
    {"awsElasticBlockStore": {"volumeID": "aws://a/nonsense"}},
    {"iscsi": {"iqn": "i"}},
    {"rbd": {"monitors": ["m1", "m2"], "image": "x", "readOnly": True}},
    {"rbd": {"monitors": ["m2"], "image": "x"}},
    {"configMap": {"name": "harmless"}},
]
_WISHES: list[Any] = [{}, {}, {}, {}, {"selector": {"matchLabels": {"tier": "gold"}}}, {"volumeMode": "Block"}]
_LABELS = [{}, {}, {"tier": "gold"}, {ZONE: "a"}, {BETA_ZONE: "a__b"}, {REGION: "r", ZONE: "a__"}]


class RandomStorage(Random):
    def rarely(self) -> bool:
        return self.random() < 0.04

    def node(self, name: str) -> Node:
        labels = self.choice(
            [
                {},
                {ZONE: "a"},
                {ZONE: "b"},
                {BETA_ZONE: "a", REGION: "r"},
                {ZONE: "a", REGION: "r", EBS_ZONE: "a"},
            ]
        )
        return a_node(name, labels={HOSTNAME: name, **labels})

    def pod(self, name: str) -> Pod:
        """Mostly with claims, sometimes with disks of its own."""
        claims: list[Any] = self.sample(CLAIMS, self.choice([0, 1, 1, 2, 2, 3]))
        disks = self.sample(_SOURCES, self.choice([0, 0, 0, 1, 1, 2]))
        mixed = [*claims, *disks]
        self.shuffle(mixed)
        return a_mounting_pod(name, *mixed, uid=f"uid {name}")

    def claim(self, name: str) -> PersistentVolumeClaim:
        bound = self.random() < 0.4
        waiting = ["wait", "wait", "local", "local", "cap", "cap", "zonal", "old"]
        volume = self.choice(VOLUMES) if bound else ""
        return a_claim(
            name,
            of=self.choice(["now", "odd", "nobody", None]) if self.rarely() else self.choice(waiting),
            size=self.choice(SIZES) if not self.rarely() else None,
            modes=self.choice([("ReadWriteOnce",), ("ReadWriteOnce",), ("ReadWriteMany",), ("ReadWriteOncePod",)]),
            volume=volume,
            bound=bound and not self.rarely(),
            selected=self.choice(NODES) if not bound and self.random() < 0.1 else None,
            owner=f"uid {name[:2]}" if name in OWN_CLAIMS and not self.rarely() else "",
            lost=self.rarely(),
            deleting=self.rarely(),
            **self.choice(_WISHES),
        )

    def volume(self, name: str) -> PersistentVolume:
        disk = {"awsElasticBlockStore": {"volumeID": f"vol-{name[-1]}"}}
        return a_volume(
            name,
            of=self.choice(["wait", "local", "local", "zonal", "old"]),
            size=self.choice(SIZES),
            modes=self.choice([("ReadWriteOnce",), ("ReadWriteOnce", "ReadWriteMany", "ReadWriteOncePod")]),
            claim=self.choice(["", "", "", *CLAIMS[:2]]),
            claim_uid=self.choice([None, None, "", "another"]),
            terms=self.choice(_REACHES),
            source=self.choice([None, None, {"local": {"path": "/x"}}, disk]),
            labels=self.choice(
                [{}, {}, {"tier": "gold"}, {ZONE: "a"}, {BETA_ZONE: "a__b"}, {REGION: "r", ZONE: "a__"}]
            ),
            phase="Released" if self.rarely() else None,
            deleting=self.rarely(),
            volumeMode="Block" if self.rarely() else "Filesystem",
        )

    def csi_node(self, name: str) -> CSINode:
        drivers = self.sample([DRIVER, EBS_DRIVER], self.choice([0, 1, 2, 2]))
        limits = {driver: self.choice([None, 0, 1, 2, 3]) for driver in drivers}
        return a_csi_node(name, limits, self.choice(["", EBS, f"other,{EBS}"]))

    def driver(self, name: str) -> CSIDriver:
        return a_driver(name, capacity=self.random() < 0.7, needed=self.random() < 0.2)

    def capacity(self, name: str) -> CSIStorageCapacity:
        return a_capacity(
            name,
            self.choice([None, "1Gi", "2Gi", "100Gi"]),
            of=self.choice(["cap", "cap", "wait"]),
            on=self.choice([{}, {ZONE: "a"}, {ZONE: "b"}, {HOSTNAME: "n0"}]),
            largest=self.choice([None, None, "1Gi", "9Gi"]),
            nowhere=self.rarely(),
        )

    def attachment(self, name: str) -> VolumeAttachment:
        volume = self.choice(VOLUMES) if not self.rarely() else None
        by = self.choice([DRIVER, DRIVER, EBS_DRIVER]) if not self.rarely() else ""
        return an_attachment(name, volume, self.choice([*NODES, *NODES, "nowhere"]), by)

    def storage(self) -> StorageObject:
        """Any object, new or in place of the one that has its name."""
        kinds: list[Any] = [
            (self.claim, [*CLAIMS, *CLAIMS, *OWN_CLAIMS]),
            (self.claim, CLAIMS),
            (self.volume, VOLUMES),
            (self.volume, VOLUMES),
            (self.storage_class, list(CLASSES)),
            (self.csi_node, NODES),
            (self.driver, [DRIVER, EBS_DRIVER, CAPACITY_DRIVER]),
            (self.capacity, ["k0", "k1", "k2"]),
            (self.attachment, ["a0", "a1", "a2"]),
        ]
        make, names = self.choice(kinds)
        made: StorageObject = make(self.choice(names))
        return made

    def storage_class(self, name: str) -> StorageClass:
        return self.choice(CLASSES[name])

    def start(self) -> list[tuple[Any, ...]]:
        """A cluster with some of everything."""
        things: list[StorageObject] = [self.storage_class(name) for name in CLASSES]
        things += [self.volume(name) for name in VOLUMES if not self.rarely()]
        things += [self.claim(name) for name in [*CLAIMS, *OWN_CLAIMS] if not self.rarely()]
        things += [self.csi_node(name) for name in NODES if self.random() < 0.8]
        things += [self.driver(name) for name in (DRIVER, CAPACITY_DRIVER) if self.random() < 0.8]
        things += [self.capacity(f"k{i}") for i in range(3)] + [self.attachment(f"a{i}") for i in range(2)]
        events: list[tuple[Any, ...]] = [("upsert_storage", thing) for thing in things]
        events += [("upsert_node", self.node(name)) for name in NODES]
        self.shuffle(events)
        return events

    def event(self) -> tuple[Any, ...]:
        pod, node = self.choice(PODS), self.choice(NODES)
        thing = self.storage()
        events: list[tuple[Any, ...]] = [
            ("upsert_storage", thing),
            ("upsert_storage", thing),
            ("upsert_storage", thing),
            ("remove_storage", type(thing), thing.metadata.key),
            ("upsert_node", self.node(node)),
            ("remove_node", node),
            ("bound", pod, node),
            ("schedule", pod),
            ("schedule", pod),
            ("schedule", pod),
            ("forget", pod),
            ("gone", pod),
        ]
        return self.choice(events)
