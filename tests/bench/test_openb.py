"""`make openb`: our figures beside the published ones."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from bench import openb

HEAD = "workload,sc_policy,tune,seed,total_gpus,100\n"
TRACES = Path(__file__).parents[2] / "examples" / "traces"


def a_line(trace: str, policy: str, figure: float) -> dict[str, object]:
    return {"trace": trace, "policy": policy, "seed": 42, "allocated_at": {"100": figure}}


def published(folder: Path, text: str) -> dict[tuple[str, str], list[float]]:
    file = folder / "published.csv"
    file.write_text(HEAD + text)
    return openb.read_published(file)


@pytest.mark.parametrize(
    ("policy", "name", "ours", "off"),
    [
        pytest.param("fgd", "06-FGD", 95.6, False, id="within half a point"),
        pytest.param("fgd", "06-FGD", 95.8, True, id="half a point is the most"),
        pytest.param("packing", "04-GpuPacking", 94.0, False, id="packing may differ by more"),
        pytest.param("packing", "04-GpuPacking", 93.0, True, id="but not by two"),
        pytest.param("shipped", "06-FGD", 50.0, False, id="what is not published has no bar"),
    ],
)
def test_means_are_compared(tmp_path: Path, policy: str, name: str, ours: float, off: bool) -> None:
    known = published(tmp_path, f"openb_pod_list_x,{name},1.3,42,8,95.0\nopenb_pod_list_x,{name},1.3,43,8,95.4\n")
    (figure,) = openb.compare([a_line("x", policy, ours)], known)
    assert figure.is_off is off
    assert ("OFF" in openb.table([figure])[1]) is off


def test_the_command_runs_the_trace_of_the_repository(tmp_path: Path) -> None:
    output = tmp_path / "o.jsonl"
    options = ["--policy", "bestfit", "--seeds", "1", "--processes", "1", "--output", output]
    done = CliRunner().invoke(openb.main, [str(each) for each in [TRACES, *options]])
    assert done.exit_code == 0, done.output
    assert output.read_text().startswith('{"trace":"tiny","policy":"bestfit","seed":42,')
    assert "tiny   bestfit" in done.stdout


def test_a_folder_without_a_trace(tmp_path: Path) -> None:
    done = CliRunner().invoke(openb.main, [str(tmp_path)])
    assert done.exit_code == 1
    assert done.output.endswith("no openb_pod_list_*.csv\n")
