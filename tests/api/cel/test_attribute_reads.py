"""What an expression reads of a device: devices that are equal in that share the answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.api.cel.attribute_reads import attribute_reads
from kubenexus.api.cel.selector import CelDevice, DeviceSelector
from kubenexus.api.cel.tokens import tokens


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        pytest.param('device.driver == "x"', set(), id="the driver alone"),
        pytest.param('device.attributes["d"].model == "x"', {"model"}, id="a field"),
        pytest.param('device.attributes["d"]["model"] == "x"', {"model"}, id="an index"),
        pytest.param("device.attributes['d'].?a.orValue(1) == 1", {"a"}, id="an optional field"),
        pytest.param('device.attributes["d"][?"a"].hasValue()', {"a"}, id="an optional index"),
        pytest.param('"a" in device.attributes["d"]', {"a"}, id="a test for presence"),
        pytest.param('x == 1 && "a" in device.capacity["d"]', {"a"}, id="a test after another condition"),
        pytest.param('cel.bind(v, device.attributes["d"], v.a == 1 && v["b"] == 2)', {"a", "b"}, id="a bound map"),
        pytest.param('"device.attributes" == "x"', set(), id="a text that looks like a read"),
        pytest.param("x.device.foo == 1", set(), id="a field named device"),
        pytest.param('device.attributes["d"].size() == 1', None, id="the size of a map"),
        pytest.param('device.attributes["d"].all(k, k != "x")', None, id="a loop over a map"),
        pytest.param('device.attributes["d" + "e"].a == 1', None, id="a computed domain"),
        pytest.param('device.attributes["d"]["a" + "b"] == 1', None, id="a computed name"),
        pytest.param('device.attributes[r"d"].a == 1', None, id="a raw text"),
        pytest.param('"a" + "b" in device.attributes["d"]', None, id="a computed name that is tested"),
        pytest.param("device.attributes == x", None, id="all attributes"),
        pytest.param("cel.bind(v, device, v.driver == 'x')", None, id="the device bound to a variable"),
        pytest.param('cel.bind(v, device.attributes["d"], size(v) == 1)', None, id="a bound map used as a whole"),
        pytest.param('device.attributes["d"] == {}', None, id="a map compared"),
    ],
)
def test_reads(expression: str, names: set[str] | None) -> None:
    found = attribute_reads(tokens(expression)).names
    assert (None if found is None else {each.name for each in found}) == names


_PARTS = st.sampled_from(
    [
        'device.attributes["d"].a == 1',
        'device.attributes["d"].b == "x"',
        'has(device.attributes["d"].c)',
        'device.attributes["e"].?a.orValue(2) == 2',
        '"b" in device.attributes["d"]',
        'cel.bind(v, device.attributes["d"], v.a == v.c)',
        'device.attributes["d"].exists(k, k == "a")',
        'size(device.attributes["d"]) == 2',
    ]
)
_EXPRESSIONS = st.lists(_PARTS, min_size=1, max_size=3).map(" && ".join)
_VALUES = st.dictionaries(st.sampled_from("abc"), st.sampled_from([1, 2, True, "x"]), max_size=3)
_DEVICES = st.builds(
    lambda d, e: CelDevice(driver="d", shared=False, attributes={"d": d, "e": e}, capacity={}), _VALUES, _VALUES
)


@given(expression=_EXPRESSIONS, devices=st.lists(_DEVICES, min_size=2, max_size=6))
def test_a_shared_answer_is_that_of_the_device_alone(expression: str, devices: list[CelDevice]) -> None:
    shared = DeviceSelector(expression)
    for device in devices:
        assert shared.matches(device) == DeviceSelector(expression).matches(device)
