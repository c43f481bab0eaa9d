"""A pod is as much work for the handler of a watch as it has entries, however few bytes they take."""

from typing import Any

import msgspec
import pytest

from kubenexus.api.core import Pod
from kubenexus.api.devices.resource_slice import ResourceSlice
from kubenexus.api.keys import KEYS
from kubenexus.api.meta import ObjectMeta
from kubenexus.app.watch.informers import PLAIN_POD, PLAIN_SLICE, pod_entries, slice_entries, watch_target
from kubenexus.client import kinds
from kubenexus.client.watch_events import MAX_WORK, decode_watch_lines, portions, split_batch


def line(number: int, spec: dict[str, Any]) -> bytes:
    metadata = {"name": f"p{number}", "namespace": "evil", "resourceVersion": str(number + 1)}
    return msgspec.json.encode({"type": "ADDED", "object": {"metadata": metadata, "spec": spec}})


def terms(count: int) -> dict[str, Any]:
    selectors = [{"matchExpressions": [{"key": f"k{i}", "operator": "Exists"}]} for i in range(count)]
    required = [{"topologyKey": "zone", "labelSelector": selector} for selector in selectors]
    return {
        "nodeName": "n",
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}},
    }


ORDINARY = {
    "containers": [{"name": "c", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}],
    "tolerations": [{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Exists"}],
}


@pytest.mark.parametrize(
    ("spec", "most"),
    [
        pytest.param(terms(500), 1500, id="no more than 1,500 short terms are handled at once"),
        pytest.param(terms(10), 1500, id="nor of many pods with a few terms each"),
        pytest.param(ORDINARY, 300, id="no more than 300 ordinary pods are handled at once"),
    ],
)
def test_a_megabyte_of_pods_is_handled_in_parts_by_their_entries(spec: dict[str, Any], most: int) -> None:
    lines = [line(number, spec) for number in range(256)]
    target, parts = watch_target(kinds.PODS), []
    for portion in portions(lines, [*map(len, lines)]):
        parts += [part.changes for part in split_batch(decode_watch_lines(portion, target.type), target.work)]
    assert sum(map(len, parts)) == 256
    each = (
        len(spec["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"])
        if ("affinity" in spec)
        else 1
    )
    assert max(map(len, parts)) * each <= most
    assert spec is not ORDINARY or len(parts) <= 2


def test_a_pod_is_work_even_if_it_is_empty() -> None:
    assert pod_entries(Pod()) == PLAIN_POD
    assert pod_entries(decode_watch_lines([line(0, terms(500))], Pod).changes[0].object) > MAX_WORK // 4


def test_a_pod_with_many_keys_that_are_read_is_as_much_work_as_many_pods() -> None:
    """Each value is parsed by several plugins, and may be one to warn of."""
    wrong = dict.fromkeys(sorted(KEYS), "perhaps")
    assert pod_entries(Pod(metadata=ObjectMeta(labels=wrong, annotations=wrong))) > 20 * PLAIN_POD
    assert pod_entries(Pod(metadata=ObjectMeta(labels={"app": "web"}))) == PLAIN_POD


def slice_line(number: int, devices: int, attributes: int, *, deeper: bool) -> bytes:
    stated = {"attributes": {f"a{i}": {"int": i} for i in range(attributes)}}
    made = [{"name": f"d{i}", **({"basic": stated} if deeper else stated)} for i in range(devices)]
    metadata = {"name": f"s{number}", "resourceVersion": str(number + 1)}
    return msgspec.json.encode({"type": "ADDED", "object": {"metadata": metadata, "spec": {"devices": made}}})


@pytest.mark.parametrize("deeper", [False, True], ids=["v1", "v1beta1"])
@pytest.mark.parametrize(
    ("devices", "attributes", "most"),
    [
        pytest.param(128, 2, 1_300, id="about a thousand devices with few attributes are handled at once"),
        pytest.param(128, 31, 128, id="or one slice of devices with many attributes"),
        pytest.param(0, 0, 0, id="or a hundred slices without any"),
    ],
)
def test_slices_are_handled_in_parts_by_what_their_devices_state(
    devices: int, attributes: int, most: int, deeper: bool
) -> None:
    lines = [slice_line(number, devices, attributes, deeper=deeper) for number in range(128)]
    target, parts = watch_target(kinds.RESOURCE_SLICES), []
    for portion in portions(lines, [*map(len, lines)]):
        parts += [part.changes for part in split_batch(decode_watch_lines(portion, target.type), target.work)]
    assert sum(map(len, parts)) == 128
    assert max(map(len, parts)) * devices <= most
    assert max(map(len, parts)) <= MAX_WORK // PLAIN_SLICE
    assert slice_entries(ResourceSlice()) == PLAIN_SLICE
