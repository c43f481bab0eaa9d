"""Two policies side by side: the figures, the page, and the conditions under which a comparison fails."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from kubenexus.base.errors import KubeNexusError
from kubenexus.cli import main
from kubenexus.sim.replay.report.compare import Figure, flattened
from kubenexus.sim.replay.report.fail_if import parse_condition
from kubenexus.sim.replay.report.svg_chart import ChartLine, line_chart

TRACES = Path(__file__).parents[3] / "examples" / "traces"


def against(*arguments: object) -> Result:
    options = ["--policy", "shipped", "--against", "kube-scheduler", *map(str, arguments)]
    return CliRunner().invoke(main, ["simulate", "trace", str(TRACES / "slots.jsonl"), *options])


def test_figures_have_paths() -> None:
    line = {"seed": 42, "placed": 3, "wait": {"all": {"p95": 9.0, "jobs": 4}, "8": {"p95": 7.5}}, "first": None}
    assert flattened(line) == {"placed": 3.0, "wait.p95": 9.0, "wait.8.p95": 7.5}


def test_both_policies_and_their_ratio() -> None:
    done = against()
    assert done.exit_code == 0, done.output
    rows = {line.split()[0]: line.split()[1:] for line in done.output.splitlines() if line}
    assert rows["figure"] == ["shipped", "kube-scheduler", "ratio"]
    own, other, ratio = rows["wait.8.p95"]
    assert ratio == f"{float(own) / float(other):.2f}x"


def test_jobs_with_eight_gpus_wait_half_as_long_as_under_kube_scheduler() -> None:
    """4 nodes with 8 GPUs, 100 jobs of 1, 2 and 8 GPUs: small jobs that are packed leave whole nodes."""
    done = against("--fail-if", "wait.8.mean > 0.5x", "--fail-if", "utilisation < 1x")
    assert done.exit_code == 0, done.output


def test_a_page_without_scripts_and_without_network(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert against("--html", page, "--output", "json").exit_code == 0
    text = page.read_text()
    assert not re.search(r"<script|https?://|src=|@import|url\(", text)
    assert text.count("<svg") == 5  # two of the legend
    for chart in re.findall(r"<svg.*?</svg>", text, re.DOTALL):
        ElementTree.fromstring(chart.replace("&nbsp;", ""))


def test_names_are_escaped() -> None:
    assert "<b>" not in line_chart("<b>", [ChartLine("<b>", [(0, 0), (1, 1)])], "<b>", "<b>")


@pytest.mark.parametrize(
    ("text", "own", "other", "fails"),
    [
        pytest.param("wait.p95 > 1.05x", 106, 100, True, id="more than so many times the other"),
        pytest.param("wait.p95 > 1.05x", 105, 100, False, id="not more"),
        pytest.param("wait.p95>=1x", 100, 100, True, id="as much, without blanks"),
        pytest.param("wait.p95 > 50", 51, 0, True, id="more than a number"),
        pytest.param("wait.p95 < 0.5x", 49, 100, True, id="less than so many times the other"),
        pytest.param("wait.p95 <= 50", 51, 0, False, id="not less than a number"),
    ],
)
def test_conditions(text: str, own: float, other: float, fails: bool) -> None:
    assert bool(parse_condition(text).check([Figure("wait.p95", own, other)])) is fails


@pytest.mark.parametrize("text", ["wait.p95", "wait.p95 > x", "> 5", "wait.p95 == 5", "wait.p95 > 5y", "a > 1e999"])
def test_what_is_no_condition(text: str) -> None:
    with pytest.raises(KubeNexusError, match="expected FIGURE"):
        parse_condition(text)


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        pytest.param(["--fail-if", "utilisation > 1x"], 3, "FAILED: utilisation > 1x: utilisation is ", id="it holds"),
        pytest.param(["--fail-if", "wait.8.mean > 0.5x"], 0, "", id="it does not"),
        pytest.param(["--fail-if", "speed > 1"], 1, "no figure 'speed'; known: placed,", id="an unknown figure"),
        pytest.param(["--fail-if", "speed"], 1, "expected FIGURE", id="no condition"),
        pytest.param(["--html", "no/such/page.html"], 1, "cannot write no/such/page.html", id="no such folder"),
        pytest.param(["--against", "shipped"], 2, "compares one --policy with another one", id="the same policy"),
    ],
)
def test_exit_codes(options: list[str], code: int, said: str) -> None:
    done = against(*options)
    assert done.exit_code == code, done.output
    assert said in done.stderr


def test_a_page_needs_a_second_policy() -> None:
    done = CliRunner().invoke(main, ["simulate", "trace", str(TRACES / "slots.jsonl"), "--html", "x.html"])
    assert (done.exit_code, done.output.splitlines()[-1]) == (2, "Error: --html and --fail-if need --against")
