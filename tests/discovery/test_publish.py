"""Discovery writes its own keys and its own NodeResourceTopology, and leaves alone what others wrote."""

import asyncio
from typing import Any

import msgspec
import pytest

from kubenexus.client.calls import ApiError, Call
from kubenexus.discovery.kubelet_config import KubeletSettings
from kubenexus.discovery.machine import Gpu, Machine, NumaNode
from kubenexus.discovery.publish import Published, publish

NODE = "/api/v1/nodes/n1"
REPORTS = "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies"
WRITTEN = "discovery.kubenexus.io/written"
COUNT, MODEL, NUMA = "gpu.kubenexus.io/count", "gpu.kubenexus.io/model", "numa.kubenexus.io/node-count"
MACHINE = Machine((NumaNode(0, (0, 1), 2**30, {}, {0: 10}),), 1, (Gpu("0000:01:00.0", "nvidia", "NVIDIA L4", numa=0),))


class FakeApi:
    """Objects by their paths, merged as an API server does; and the calls that changed something."""

    def __init__(self, labels: dict[str, str] | None = None, annotations: dict[str, str] | None = None) -> None:
        metadata = {"name": "n1", "uid": "u1", "labels": labels or {}, "annotations": annotations or {}}
        amounts = {"cpu": "2", "nvidia.com/gpu": "1"}
        status = {"allocatable": amounts, "capacity": amounts}
        self.objects: dict[str, Any] = {NODE: {"kind": "Node", "metadata": metadata, "status": status}}
        self.calls: list[str] = []
        self.serves_reports = True

    async def send(self, call: Call, *, timeout: float = 10.0) -> bytes:
        body: Any = msgspec.json.decode(call.body) if call.body else {}
        if call.method != "GET":
            self.calls.append(f"{call.method} {call.path}")
        if call.path.startswith(REPORTS) and not self.serves_reports:
            raise ApiError(404, "NotFound")
        if call.method == "POST":
            self.objects[f"{call.path}/{body['metadata']['name']}"] = merged({}, body)
            return b"{}"
        if call.path not in self.objects:
            raise ApiError(404, "NotFound")
        if call.method == "PATCH":
            self.objects[call.path] = merged(self.objects[call.path], body)
        elif call.method == "DELETE":
            del self.objects[call.path]
            return b"{}"
        return msgspec.json.encode(self.objects[call.path])

    @property
    def labels(self) -> dict[str, str]:
        return dict(self.objects[NODE]["metadata"]["labels"])

    @property
    def annotations(self) -> dict[str, str]:
        return dict(self.objects[NODE]["metadata"]["annotations"])


def merged(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def published(api: FakeApi, machine: Machine | None = MACHINE, **options: Any) -> Published:
    return asyncio.run(publish(api, "n1", machine, **options))


def test_the_second_time_nothing_is_written() -> None:
    api = FakeApi({"kubernetes.io/hostname": "n1"})
    first = published(api)
    assert (first.node, first.topology) == ("updated", "created")
    assert api.labels[COUNT] == "1"
    assert api.labels["kubernetes.io/hostname"] == "n1"
    api.calls.clear()
    second = published(api)
    assert (second.node, second.topology, api.calls) == ("unchanged", "unchanged", [])


def test_what_is_no_longer_there_is_removed_and_only_that() -> None:
    api = FakeApi({"kubernetes.io/hostname": "n1", "gpu.kubenexus.io/shared": "true"}, {"note": "mine"})
    published(api)
    done = published(api, Machine(MACHINE.numa_nodes, 1))
    assert (done.node, done.topology) == ("updated", "deleted")
    assert set(api.labels) == {
        "kubernetes.io/hostname",
        "gpu.kubenexus.io/shared",
        NUMA,
        "numa.kubenexus.io/threads-per-core",
    }
    published(api, None)
    assert (set(api.labels), api.annotations) == (
        {"kubernetes.io/hostname", "gpu.kubenexus.io/shared"},
        {"note": "mine"},
    )


@pytest.mark.parametrize(
    ("labels", "annotations", "key"),
    [
        pytest.param({MODEL: "H100"}, {}, MODEL, id="a label of a person"),
        pytest.param({}, {MODEL: "H100"}, MODEL, id="an annotation, which a label would hide"),
        pytest.param({"hardware.kubenexus.io/gpu-model": "H100"}, {}, MODEL, id="another spelling of the key"),
        pytest.param({"gpu.kubenexus.io/gpu0-numa": "1"}, {}, "gpu.kubenexus.io/numa-node-0", id="a key with a number"),
        pytest.param({MODEL: "NVIDIA-L4"}, {}, MODEL, id="the same value does not make it ours"),
    ],
)
def test_a_key_that_others_wrote_stays(labels: dict[str, str], annotations: dict[str, str], key: str) -> None:
    api = FakeApi(labels, annotations)
    done = published(api)
    assert done.left_alone == (key,)
    assert labels.items() <= api.labels.items()
    assert annotations.items() <= api.annotations.items()
    assert key not in api.annotations[WRITTEN].split(",")
    published(api, None)
    assert (api.labels, api.annotations) == (labels, annotations)


def test_another_spelling_that_a_person_adds_later_takes_the_place_of_ours() -> None:
    api = FakeApi()
    published(api)
    api.objects[NODE]["metadata"]["labels"]["hardware.kubenexus.io/gpu-model"] = "T4"
    assert published(api).left_alone == (MODEL,)
    assert MODEL not in api.labels
    assert MODEL not in api.annotations[WRITTEN]


def test_a_forged_note_makes_it_remove_no_key_that_it_never_writes() -> None:
    note = "kubernetes.io/hostname,gpu.kubenexus.io/shared,node-role.kubernetes.io/control-plane," + MODEL
    labels = {"kubernetes.io/hostname": "n1", "gpu.kubenexus.io/shared": "true", MODEL: "T4"}
    api = FakeApi(labels, {WRITTEN: note})
    published(api, None)
    assert (api.labels, api.annotations) == ({key: labels[key] for key in labels if key != MODEL}, {})


def test_the_report_of_another_agent_stays() -> None:
    api = FakeApi()
    theirs = {"metadata": {"name": "n1", "labels": {}}, "zones": []}
    api.objects[f"{REPORTS}/n1"] = theirs
    assert published(api).topology == "kept by another agent"
    assert published(api, None).topology == "kept by another agent"
    assert api.objects[f"{REPORTS}/n1"] == theirs


def test_a_changed_kubelet_changes_the_report() -> None:
    api = FakeApi()
    published(api)
    assert published(api, kubelet=KubeletSettings(known=True, static_cpus=True)).topology == "updated"
    report = api.objects[f"{REPORTS}/n1"]
    assert report["metadata"]["ownerReferences"][0]["uid"] == "u1"
    assert [each["name"] for each in report["zones"][0]["resources"]] == ["cpu", "nvidia.com/gpu"]


def test_a_card_that_is_not_healthy_takes_the_devices_out_of_the_report() -> None:
    api = FakeApi()
    api.objects[NODE]["status"]["capacity"] = {"cpu": "2", "nvidia.com/gpu": "2"}
    assert published(api).topology == "nothing to tell"


def test_without_the_kind_the_node_is_written_all_the_same() -> None:
    api = FakeApi()
    api.serves_reports = False
    done = published(api)
    assert done.topology.startswith("the cluster has no such kind")
    assert api.labels[COUNT] == "1"
    assert published(api, topologies=False).topology == "not wanted"


def test_other_refusals_are_errors() -> None:
    api = FakeApi()
    del api.objects[NODE]
    with pytest.raises(ApiError):
        published(api)
