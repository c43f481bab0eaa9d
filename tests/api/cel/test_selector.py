"""CEL selectors of devices: what they answer, and in which words they fail."""

import pytest

from kubenexus.api.cel.selector import CelDevice, DeviceSelector, cel_quantity, cel_value

GPU = CelDevice(
    driver="gpu.example.com",
    shared=False,
    attributes={
        "gpu.example.com": {
            "model": "a100",
            "healthy": True,
            "slices": 7,
            "driverVersion": cel_value(None, None, None, "1.10.0"),
            "address": "10.1.2.3",
        },
        "example.com": {"numa": 1},
    },
    capacity={"gpu.example.com": {"memory": cel_quantity("80Gi")}},
)
HINT = ". consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has() for optional"


def answer(expression: str, device: CelDevice = GPU) -> bool | str:
    selector = DeviceSelector(expression)
    return selector.problem or selector.matches(device)


@pytest.mark.parametrize(
    "expression",
    [
        'device.driver == "gpu.example.com"',
        'device.driver.startsWith("gpu")',
        "device.allowMultipleAllocations == false",
        'device.attributes["gpu.example.com"].model in ["a100", "h100"]',
        'device.attributes["gpu.example.com"].model.matches("^[ah]100$")',
        'device.attributes["gpu.example.com"]["model"] == "a100"',
        'device.attributes["gpu.example.com"].healthy',
        'device.attributes["gpu.example.com"].driverVersion.isGreaterThan(semver("1.9.0"))',
        'device.attributes["gpu.example.com"].driverVersion.compareTo(semver("1.10.0-rc.1")) == 1',
        'device.attributes["gpu.example.com"].driverVersion == semver("v1.10", true)',
        'device.attributes["gpu.example.com"].driverVersion.minor() == 10',
        'device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) > 0',
        'device.capacity["gpu.example.com"].memory == quantity("81920Mi")',
        'device.capacity["gpu.example.com"].memory.sub(quantity("1Gi")).isLessThan(quantity("80Gi"))',
        'device.capacity["gpu.example.com"].memory.asInteger() == 85899345920',
        'cidr("10.0.0.0/8").containsIP(device.attributes["gpu.example.com"].address)',
        'ip(device.attributes["gpu.example.com"].address).family() == 4',
        'isIP("::1") && !isIP("::ffff:1.2.3.4") && ip("::1").isLoopback()',
        'cidr("192.168.0.1/24").masked() == cidr("192.168.0.0/24")',
        'cel.bind(a, device.attributes["gpu.example.com"], a.model == "t4" || a.healthy)',
        'device.attributes["gpu.example.com"].?model.orValue("") == "a100"',
        'device.attributes["none.example.com"].?model.orValue("x") == "x"',
        '!has(device.attributes["none.example.com"].speed)',
        '!("speed" in device.attributes["none.example.com"])',
        'device.attributes["gpu.example.com"].model.upperAscii() == "A100"',
        '"gpu-a100".split("-")[1] == device.attributes["gpu.example.com"].model',
        'device.attributes["gpu.example.com"].exists(name, name == "model")',
        'sets.contains(["a100", "h100"], [device.attributes["gpu.example.com"].model])',
        '[device.attributes["gpu.example.com"].slices, 3].max() == 7',
        'device.attributes["gpu.example.com"].nothing == "x" || true',
        'device.attributes["example.com"].numa == 1.0',
        'device.attributes["gpu.example.com"].healthy != 1',
        'isQuantity("1.3Gi") && !isQuantity("200K") && isSemver("1.0.0") && !isSemver("v1.0")',
    ],
)
def test_an_expression_that_matches(expression: str) -> None:
    assert answer(expression) is True


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        pytest.param(
            'device.attributes["gpu.example.com"].nothing == "x"',
            f"no such key: nothing{HINT} fields",
            id="no such key",
        ),
        pytest.param(
            'device.attributes["none.example.com"].x == "x"',
            f"no such key: x{HINT} fields",
            id="a domain that the device does not have is an empty map",
        ),
        pytest.param('device.attributes["gpu.example.com"].model > 5', "no such overload", id="wrong types"),
        pytest.param("1 / 0 == 1", "division by zero", id="division by zero"),
        pytest.param('quantity("1x") == quantity("1")', "quantities must match", id="no quantity"),
        pytest.param('semver("1") == semver("1.0.0")', "invalid semantic version '1'", id="no version"),
        pytest.param(
            'device.capacity["gpu.example.com"].memory.compareTo(semver("1.0.0")) > 0',
            "no such overload",
            id="a quantity is no version",
        ),
        pytest.param("device", "could not be converted to bool", id="an answer that is no bool"),
        pytest.param('"a"', "must evaluate to bool or the unknown type, not string", id="a text as the answer"),
        pytest.param("1 +", "compilation failed: 1:4: Syntax error", id="no CEL"),
        pytest.param("foo(1)", "compilation failed: 1:4: undeclared reference to 'foo'", id="no such function"),
        pytest.param("x" * 20_000, "has 20000 characters, more than 10240", id="too long"),
    ],
)
def test_an_error_is_an_answer_in_one_line(expression: str, error: str) -> None:
    said = answer(expression)
    assert isinstance(said, str)
    assert error in said
    assert "\n" not in said


def test_a_version_that_cannot_be_read_fails_every_expression() -> None:
    with pytest.raises(ValueError, match="parse semantic version"):
        cel_value(None, None, None, "one")
    broken = CelDevice(driver="d", shared=False, attributes={}, capacity={}, problem="attribute v: no version")
    assert answer("true", broken) == "attribute v: no version"


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("!" * 5000 + "true", id="a long chain of signs"),
        pytest.param("device" + ".a" * 4000, id="a long chain of fields"),
        pytest.param("(" * 2000 + "true" + ")" * 2000, id="deep brackets"),
        pytest.param('"""' + "a" * 5000, id="a text without an end"),
        pytest.param("\x00", id="a control character"),
    ],
)
def test_a_hostile_text_neither_crashes_nor_passes(expression: str) -> None:
    assert answer(expression) is not True
