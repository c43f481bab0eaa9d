"""Random storage and random events on a small cluster: few names, so that everything meets everything."""

from typing import Any

from hypothesis import strategies as st

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
    key_of,
)
from kubenexus.testing.builders import HOSTNAME, ZONE, a_node
from tests.volumes.some import (
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
NODES, PODS = ["n0", "n1", "n2", "n3"], [f"p{i}" for i in range(5)]
CLAIMS = [f"c{i}" for i in range(5)] + ["p0-v0", "p1-v0"]  # the last two as if made for ephemeral volumes
VOLUMES = [f"pv{i}" for i in range(5)]
CLASSES = ["wait", "local", "cap", "zonal", "now", "odd", "old"]
SIZES = ["1Gi", "2Gi", "1500Mi", "5Gi"]
REGION = "topology.kubernetes.io/region"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
EBS_ZONE = "topology.ebs.csi.aws.com/zone"

one_of, maybe = st.sampled_from, st.booleans
rarely = st.sampled_from([False, False, False, True])


@st.composite
def nodes(draw: Any) -> Node:
    labels = draw(
        one_of([{}, {ZONE: "a"}, {ZONE: "b"}, {BETA_ZONE: "a", REGION: "r"}, {ZONE: "a", REGION: "r", EBS_ZONE: "a"}])
    )
    name = draw(one_of(NODES))
    return a_node(name, labels={HOSTNAME: name, **labels})


@st.composite
def pods(draw: Any, name: str) -> Pod:
    sources: list[Any] = [
        *CLAIMS[:5],
        *CLAIMS[:5],
        *CLAIMS[:5],
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
    return a_mounting_pod(name, *draw(st.lists(one_of(sources), max_size=3)), uid=f"uid {name}")


@st.composite
def claims(draw: Any) -> PersistentVolumeClaim:
    volume = draw(one_of(["", "", *VOLUMES]))
    name = draw(one_of(CLAIMS))
    return a_claim(
        name,
        of=draw(one_of([*CLASSES, "wait", "local", "cap", "zonal", "nobody", None])),
        size=draw(one_of([*SIZES, None])),
        modes=draw(one_of([("ReadWriteOnce",), ("ReadWriteMany",), ("ReadWriteOncePod",)])),
        volume=volume,
        bound=bool(volume) and draw(one_of([True, True, False])),
        selected=draw(one_of([None, None, None, None, *NODES])) if not volume else None,
        owner=draw(one_of(["uid p0", "uid p1"])) if name.startswith("p") else "",
        lost=draw(rarely) and draw(rarely),
        deleting=draw(rarely) and draw(rarely),
        **draw(one_of([{}, {}, {"selector": {"matchLabels": {"tier": "gold"}}}, {"volumeMode": "Block"}])),
    )


@st.composite
def volumes(draw: Any) -> PersistentVolume:
    name = draw(one_of(VOLUMES))
    where: list[Any] = [
        None,
        [],
        [_term(ZONE, ["a"])],
        [_term(ZONE, ["a", "b"])],
        [_term(HOSTNAME, ["n0"])],
        [_term(HOSTNAME, ["n1"]), _term(HOSTNAME, ["n2"])],
        [{"matchExpressions": [*_term(ZONE, ["a"])["matchExpressions"], {"key": REGION, "operator": "Exists"}]}],
        [{"matchExpressions": [{"key": ZONE, "operator": "NotIn", "values": ["b"]}]}],
        [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n0"]}]}],
    ]
    source = draw(
        one_of([None, None, {"local": {"path": "/x"}}, {"awsElasticBlockStore": {"volumeID": f"vol-{name[-1]}"}}])
    )
    return a_volume(
        name,
        of=draw(one_of(["wait", "local", "local", "zonal", "old"])),
        size=draw(one_of(SIZES)),
        modes=draw(one_of([("ReadWriteOnce",), ("ReadWriteOnce", "ReadWriteMany", "ReadWriteOncePod")])),
        claim=draw(one_of(["", "", "", *CLAIMS[:3]])),
        claim_uid=draw(one_of([None, "", "another"])),
        terms=draw(one_of(where)),
        source=source,
        labels=draw(one_of([{}, {"tier": "gold"}, {ZONE: "a"}, {BETA_ZONE: "a__b"}, {REGION: "r", ZONE: "a__"}])),
        phase=draw(one_of([None, None, None, "Released"])),
        deleting=draw(rarely) and draw(rarely),
        **draw(one_of([{}, {}, {}, {"volumeMode": "Block"}])),
    )


def _term(key: str, values: list[str]) -> Any:
    return {"matchExpressions": [{"key": key, "operator": "In", "values": values}]}


def classes() -> Any:
    made = {
        "wait": [a_class("wait"), a_class("wait", by="kubernetes.io/no-provisioner")],
        "local": [a_class("local", by="kubernetes.io/no-provisioner")],
        "cap": [a_class("cap", by=CAPACITY_DRIVER), a_class("cap", by=CAPACITY_DRIVER, zones=["a", "b"])],
        "zonal": [a_class("zonal", zones=["a"]), a_class("zonal", zones=["b"])],
        "now": [a_class("now", mode="Immediate")],
        "odd": [a_class("odd", mode=None)],
        "old": [a_class("old", by=EBS)],
    }
    return one_of([each for several in made.values() for each in several])


def csi_nodes() -> Any:
    limits = st.dictionaries(one_of([DRIVER, EBS_DRIVER]), one_of([None, 0, 1, 2]))
    return st.builds(a_csi_node, one_of(NODES), limits, one_of(["", EBS]))


def drivers() -> Any:
    return st.builds(a_driver, one_of([DRIVER, EBS_DRIVER, CAPACITY_DRIVER]), capacity=maybe(), needed=rarely)


def capacities() -> Any:
    return st.builds(
        a_capacity,
        one_of(["k0", "k1", "k2"]),
        one_of([None, "1Gi", "2Gi", "100Gi"]),
        of=one_of(["cap", "cap", "wait"]),
        on=one_of([{}, {ZONE: "a"}, {ZONE: "b"}, {HOSTNAME: "n0"}]),
        largest=one_of([None, None, "1Gi", "9Gi"]),
        nowhere=rarely,
    )


def attachments() -> Any:
    names, nodes = one_of(["a0", "a1", "a2"]), one_of([*NODES, "nowhere"])
    return st.builds(an_attachment, names, one_of([*VOLUMES, None]), nodes, one_of([DRIVER, EBS_DRIVER, ""]))


def storage() -> Any:
    return st.one_of(
        claims(), claims(), volumes(), volumes(), classes(), csi_nodes(), drivers(), capacities(), attachments()
    )


KINDS = [
    PersistentVolumeClaim,
    PersistentVolume,
    StorageClass,
    CSINode,
    CSIDriver,
    CSIStorageCapacity,
    VolumeAttachment,
]


@st.composite
def gone(draw: Any) -> tuple[type, str]:
    thing: StorageObject = draw(storage())
    return type(thing), key_of(thing)
