"""The annotation that names a pod's devices: its owner may write anything into it, and can only lose by that."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.api.core import Pod
from kubenexus.api.devices.device import MAX_MEMORY
from kubenexus.api.devices.device_share import DeviceShare, devices_annotation, held_shares
from kubenexus.api.keys import gpu
from kubenexus.state.devices.columns import DRIVER_MEMORY
from kubenexus.testing.builders import GPU, a_node, a_pod
from kubenexus.testing.harness import a_ledger, on_node

GIB = 1 << 30


def a_holder(text: str, name: str = "pod", number: int = 2, node: str = "n", **also: str) -> Pod:
    """A bound pod that requests GPUs and has this annotation."""
    return a_pod(name, gpu=number or None, node=node, annotations={gpu.DEVICES.key: text, **also})


@pytest.mark.parametrize(
    ("text", "held"),
    [
        pytest.param('[{"device":"gpu-0"}]', (DeviceShare("gpu-0"),), id="a share that is not stated is the whole"),
        pytest.param(
            '[{"device":"gpu-0","share":500,"memory":"20Gi"},{"device":"gpu-1","share":1}]',
            (DeviceShare("gpu-0", 500, 20 * GIB), DeviceShare("gpu-1", 1)),
            id="parts with and without memory",
        ),
        pytest.param('[{"device":"g","later":[1]}]', (DeviceShare("g"),), id="fields of later versions are ignored"),
        pytest.param('[{"device":"g","memory":1073741824}]', (DeviceShare("g", 1000, GIB),), id="bytes as a number"),
        pytest.param('[{"device":"g","memory":"-5Gi"}]', (DeviceShare("g"),), id="less than no memory is none"),
        pytest.param('[{"device":"g","memory":"1e30"}]', (DeviceShare("g", 1000, MAX_MEMORY),), id="10^30 bytes"),
        pytest.param('[{"device":"g","memory":"8Ei"}]', (DeviceShare("g", 1000, MAX_MEMORY),), id="8 exbibytes"),
    ],
)
def test_what_can_be_read(text: str, held: tuple[DeviceShare, ...]) -> None:
    assert held_shares(a_holder(text)) == held


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("[]", id="no device"),
        pytest.param("{}", id="an object"),
        pytest.param("null", id="null"),
        pytest.param('["gpu-0"]', id="names alone"),
        pytest.param("[" * 30_000, id="nested without end"),
        pytest.param('[{"device":' * 2_000, id="objects nested without end"),
        pytest.param(f'[{{"device":"{"g" * 254}"}}]', id="a name that is too long"),
        pytest.param(f'[{{"device":"g"}}]{" " * 32_768}', id="a text that is too long"),
        pytest.param('[{"device":""}]', id="a device without a name"),
        pytest.param('[{"device":7}]', id="a number for a name"),
        pytest.param('[{"device":"g","share":0}]', id="no share"),
        pytest.param('[{"device":"g","share":-1}]', id="less than no share"),
        pytest.param('[{"device":"g","share":1001}]', id="more than a card"),
        pytest.param('[{"device":"g","share":0.5}]', id="a part of a thousandth"),
        pytest.param('[{"device":"g","share":"500"}]', id="a share as text"),
        pytest.param('[{"device":"g","share":NaN}]', id="a share that is no number"),
        pytest.param(f'[{{"device":"g","share":{10**30}}}]', id="a share of 10^30"),
        pytest.param('[{"device":"g","share":1e400}]', id="a share beyond all floats"),
        pytest.param('[{"device":"g","memory":"a lot"}]', id="memory that is no quantity"),
        pytest.param('[{"device":"g","memory":[1]}]', id="memory as a list"),
        pytest.param('[{"device":"g","memory":NaN}]', id="memory that is no number"),
        pytest.param('[{"device":"g"},{"device":"g"}]', id="one device twice"),
        pytest.param('[{"device":"a"},{"device":"b"},{"device":"c"}]', id="more devices than the pod requests"),
        pytest.param('[{"device":"a"},{"device":"b","share":0}]', id="one bad entry spoils all"),
    ],
)
def test_what_cannot_be_read_holds_nothing(text: str) -> None:
    assert held_shares(a_holder(text)) == ()


@pytest.mark.parametrize(
    ("pod", "count"),
    [
        pytest.param(a_pod(gpu=2), 2, id="as many as it requests"),
        pytest.param(a_pod(requests={GPU: 65}), 2, id="never more than a node has"),
        pytest.param(a_pod(cpu=1), 0, id="none if it requests none"),
        pytest.param(a_pod(requests={"example.com/cheap": 5}), 0, id="other resources are no right to GPUs"),
        pytest.param(a_pod(annotations={gpu.FRACTION.key: "0.5"}), 1, id="one for a part of a GPU"),
    ],
)
def test_a_pod_has_no_more_devices_by_name_than_it_can_have(pod: Pod, count: int) -> None:
    names = tuple(DeviceShare(f"gpu-{i}") for i in range(2))
    for held in (names[:1], names):
        pod.metadata.annotations[gpu.DEVICES.key] = devices_annotation(held)
        assert len(held_shares(pod)) == (len(held) if len(held) <= count else 0)


SHARES = st.builds(DeviceShare, st.text(min_size=1, max_size=20), st.integers(1, 1000), st.integers(0, MAX_MEMORY))


@given(shares=st.lists(SHARES, min_size=1, max_size=8, unique_by=lambda each: each.device).map(tuple))
def test_what_is_written_is_read_again(shares: tuple[DeviceShare, ...]) -> None:
    assert held_shares(a_holder(devices_annotation(shares), number=8)) == shares


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["device", "share", "memory"]), inner),
)


@given(value=st.lists(st.dictionaries(st.sampled_from(["device", "share", "memory"]), JSON), max_size=2) | JSON)
def test_whatever_it_contains_nothing_fails(value: object) -> None:
    held = held_shares(a_holder(msgspec.json.encode(value).decode()))
    assert all(0 < each.share <= 1000 and 0 <= each.memory <= MAX_MEMORY for each in held)


@given(text=st.text(max_size=50))
def test_whatever_text_it_is_nothing_fails(text: str) -> None:
    held_shares(a_holder(text))


def test_hostile_pods_leave_a_card_taken_and_never_larger_than_it_is() -> None:
    """Sums of what owners claim stay below zero, also after a hundred of them."""
    node = a_node("n", resources={GPU: 2}, labels={gpu.SHARED.key: "true", gpu.VRAM.key: "80Gi"})
    text = '[{"device":"gpu-0","share":1000,"memory":"8Ei"}]'
    pods = [a_holder(text, f"p{i}", 0, **{gpu.FRACTION.key: "0.1"}) for i in range(100)]
    ledger = a_ledger([node], pods)
    devices = ledger.nodes.devices
    assert devices.memory.item(0, 0) == (80 << 30) - DRIVER_MEMORY - 100 * MAX_MEMORY
    assert devices.share.item(0, 0) == 1000 - 100 * 1000
    assert devices.free.item(0) == 0b10
    for pod in pods:
        ledger.remove_pod(pod.key)
    assert (devices.share.item(0, 0), devices.memory.item(0, 0)) == (1000, (80 << 30) - DRIVER_MEMORY)
    assert devices.free.item(0) == 0b11


@pytest.mark.parametrize(
    ("pod", "shared", "taken"),
    [
        pytest.param(a_pod("p", gpu=2), False, 0b11, id="cards that it requests"),
        pytest.param(a_pod("p", requests={GPU: 1, "amd.com/gpu": 1}), False, 0b01, id="not more than it requests"),
        pytest.param(a_pod("p", requests={"amd.com/gpu": 2}), False, 0, id="no cards of another resource"),
        pytest.param(a_pod("p", requests={"amd.com/gpu": 2}), True, 0b01, id="one of them where cards are shared"),
        pytest.param(a_pod("p", requests={"example.com/cheap": 2}), True, 0, id="none for a cheap resource"),
    ],
)
def test_a_pod_that_names_two_cards_takes(pod: Pod, shared: bool, taken: int) -> None:
    node = a_node("n", resources={GPU: 4}, labels={gpu.SHARED.key: str(shared).lower()})
    pod.metadata.annotations[gpu.DEVICES.key] = devices_annotation((DeviceShare("gpu-0"), DeviceShare("gpu-1")))
    ledger = a_ledger([node], [on_node(pod, "n")])
    devices = ledger.nodes.devices
    assert devices.free.item(0) == 0b1111 & ~taken
    assert devices.attributed[GPU].item(0) <= ledger.nodes.resources.used[ledger.nodes.resources.index[GPU], 0]
    assert ledger.audit(node) == []
