"""Log lines as tools that read Kubernetes' logs expect them."""

import asyncio
import contextlib
import io
import json
import logging
import re
from collections.abc import Iterator
from typing import Any, Literal

import pytest

from kubenexus.observe import logs
from kubenexus.observe.log_formatters import KlogFormatter, ObjectRef
from kubenexus.testing.builders import a_node, a_pod

POD = a_pod("web-0", namespace="shop")


@contextlib.contextmanager
def written(verbosity: int = 0, form: Literal["text", "json"] = "text") -> Iterator[io.StringIO]:
    stream = io.StringIO()
    handler = logs.configure(verbosity, form, stream)
    try:
        yield stream
    finally:
        logging.getLogger().removeHandler(handler)
        logging.getLogger(logs.NAME).setLevel(logging.NOTSET)


def after_head(line: str) -> str:
    return line.split("] ", 1)[1].rstrip("\n")


def test_a_line_of_text_is_klogs() -> None:
    with written() as stream:
        logs.get("loop").info("Bound pod", pod=POD, node="n1", attempts=2)
    head = r"I\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ test_logs\.py:\d+\] "
    assert re.fullmatch(head + r'"Bound pod" pod="shop/web-0" node="n1" attempts=2\n', stream.getvalue())


def test_the_head_has_the_time_and_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    record = logging.LogRecord("x", logging.ERROR, "/a/schedule.py", 12, "Message", (), None)
    record.created, record.process = 1_794_792_257.123456, 12345
    monkeypatch.setenv("TZ", "UTC")
    line = KlogFormatter().format(record)
    assert re.fullmatch(r'E111[5-7] \d\d:24:17\.123456   12345 schedule\.py:12\] "Message"', line)


def test_a_line_of_json_is_component_bases() -> None:
    with written(3, "json") as stream:
        logs.get().v(2, "Bound pod", pod=POD, node=a_node("n1"), ok=True, score=1.5)
    line = json.loads(stream.getvalue())
    assert list(line) == ["ts", "caller", "msg", "v", "pod", "node", "ok", "score"]
    assert line["ts"] > 1e12  # milliseconds
    assert re.fullmatch(r"observe/test_logs\.py:\d+", line["caller"])
    assert (line["msg"], line["v"]) == ("Bound pod", 2)
    assert (line["pod"], line["node"]) == ({"name": "web-0", "namespace": "shop"}, {"name": "n1"})


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param("plain", '"plain"', id="a text is quoted"),
        pytest.param('a "b"\t\x1b[31m', r'"a \"b\"\t\u001b[31m"', id="what would break the line is escaped"),
        pytest.param("one\ntwo", "<\n\tone\n\ttwo\n >", id="several lines are set off"),
        pytest.param(True, "true", id="a flag"),
        pytest.param(None, "null", id="nothing"),
        pytest.param(0.5, "0.5", id="a number"),
        pytest.param([1, "a"], '[1,"a"]', id="a list"),
        pytest.param({"a": (1,)}, '{"a":[1]}', id="a mapping"),
        pytest.param(ValueError("bad"), '"bad"', id="an error"),
        pytest.param(ObjectRef("ns", "x"), '"ns/x"', id="a reference"),
        pytest.param(ObjectRef("", "n1"), '"n1"', id="a reference without a namespace"),
        pytest.param("x" * 9000, '"' + "x" * 8192 + '... (9000 characters)"', id="a long one is shortened"),
        pytest.param("\ud800", '"?"', id="half a letter is no crash"),
    ],
)
def test_a_value_is_written_so_that_a_line_stays_a_line(value: Any, expected: str) -> None:
    with written() as stream:
        logs.get().info("M", x=value)
    assert after_head(stream.getvalue()) == f'"M" x={expected}'


def test_an_error_has_its_text_first_and_its_trace_only_when_asked_for() -> None:
    def fail() -> None:
        try:
            raise ValueError("broken")
        except ValueError as error:
            logs.get().error("Failed to bind", error, pod=POD)

    with written() as stream:
        fail()
    assert stream.getvalue().startswith("E")
    assert after_head(stream.getvalue()) == '"Failed to bind" err="broken" pod="shop/web-0"'
    with written(5) as stream:
        fail()
    assert "stacktrace=<\n\tTraceback (most recent call last):" in stream.getvalue()
    with written(0, "json") as stream:
        fail()
    assert "v" not in json.loads(stream.getvalue())


def test_verbosity_decides() -> None:
    log = logs.get("loop")
    with written(2) as stream:
        log.v(2, "Shown")
        log.v(3, "Hidden")
        log.warning("Warned")
        assert (log.enabled(2), log.enabled(3)) == (True, False)
    assert [after_head(line) for line in stream.getvalue().splitlines()] == ['"Shown"', '"Warned"']


def test_all_lines_of_a_decision_carry_its_id_in_tasks_too() -> None:
    log = logs.get()

    async def bind() -> None:
        await asyncio.sleep(0)
        log.info("Bound")

    async def decide() -> None:
        with logs.cycle("17"):
            log.info("Decided")
            task = asyncio.create_task(bind())
        log.info("Idle")
        await task

    with written() as stream:
        asyncio.run(decide())
    lines = [after_head(line) for line in stream.getvalue().splitlines()]
    assert lines == ['"Decided" cycle="17"', '"Idle"', '"Bound" cycle="17"']


def test_a_bound_log_says_its_keys_each_time() -> None:
    with written() as stream:
        logs.get().bind(profile="p").bind(job="a").info("M", x=1)
    assert after_head(stream.getvalue()) == '"M" x=1 profile="p" job="a"'


def test_other_packages_take_the_same_form() -> None:
    with written() as stream:
        logging.getLogger("aiohttp.access").warning("odd %s\nthing", "request")
        logging.getLogger("aiohttp.access").info("hidden")
    assert after_head(stream.getvalue()) == "<\n\todd request\n\tthing\n >"


def test_a_name_that_logging_has_is_a_key_as_any_other() -> None:
    with written() as stream:
        logs.get().info("M", name="x", message="y", level=1)
    assert after_head(stream.getvalue()) == '"M" name="x" message="y" level=1'
