"""`kubenexus simulate openb|philly|trace`: what is printed, and the exit code."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kubenexus.cli import main
from kubenexus.sim.replay.cluster import ReplayCluster

TRACES = Path(__file__).parents[3] / "examples" / "traces"


def simulate(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["simulate", *map(str, arguments)])


def lines(done: Result) -> list[dict[str, Any]]:
    assert done.exit_code == 0, done.output
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_line_of_json_for_each_run() -> None:
    found = lines(simulate("openb", TRACES, "--policy", "fgd", "--policy", "bestfit", "--seeds", "42-43", "-o", "json"))
    assert [(each["policy"], each["seed"]) for each in found] == [
        ("fgd", 42),
        ("bestfit", 42),
        ("fgd", 43),
        ("bestfit", 43),
    ]
    assert list(found[0]) == [
        "trace",
        "policy",
        "seed",
        "pods",
        "placed",
        "allocated_at",
        "first_refusal_at",
        "nodes_in_use",
        "digest",
        "decisions_per_s",
    ]
    assert found[0]["trace"] == "tiny"
    assert list(found[0]["allocated_at"])[0::9] == ["10", "100"]


def test_the_same_seed_gives_the_same_bytes_but_for_the_speed() -> None:
    def text() -> str:
        done = simulate("openb", TRACES, "--policy", "shipped", "--seeds", 5, "-o", "json").stdout
        return done.rpartition('"decisions_per_s"')[0]

    assert text() == text() != ""


def test_a_table_over_all_seeds() -> None:
    done = simulate("openb", TRACES, "--policy", "bestfit", "--seeds", "1-2")
    assert done.exit_code == 0
    assert done.output.splitlines()[1].split()[:3] == ["tiny", "bestfit", "2"]


def test_a_trace_with_departures() -> None:
    (found,) = lines(simulate("trace", TRACES / "slots.jsonl", "--output", "json"))
    assert found["never_started"] == 0
    assert list(found["wait"]) == ["all", "1", "2", "8"]
    assert set(found["tenant_gpu_hours"]) == {"product", "research"}


def test_philly(tmp_path: Path) -> None:
    jobs = tmp_path / "philly.csv"
    jobs.write_text("timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-09 07:01:55,66.0,1,66.0,a\n")
    (found,) = lines(simulate("philly", jobs, "--nodes", "2x8", "--policy", "kube-scheduler", "-o", "json"))
    assert (found["placed"], found["utilisation"]) == (1, 0.0)


def test_a_profile_of_a_configuration_is_a_policy(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles:\n- schedulerName: mine\n"
    )
    (found,) = lines(simulate("openb", TRACES, "--config", config, "--policy", "mine", "-o", "json"))
    assert found["policy"] == "mine"


@pytest.mark.parametrize(
    ("arguments", "problem", "code"),
    [
        pytest.param(["openb", TRACES, "--policy", "no"], "unknown policy 'no'; known: shipped", 1, id="a policy"),
        pytest.param(["openb", TRACES, "--trace", "no"], "no openb_pod_list_no.csv", 1, id="a trace"),
        pytest.param(["openb", "no.csv"], "cannot read openb_node_list_gpu_node.csv: No such file", 1, id="a file"),
        pytest.param(["openb", TRACES, "--config", "no.yaml"], "cannot read no.yaml", 1, id="a configuration"),
        pytest.param(["openb", TRACES, "--seeds", "4-"], "is not a list like 42-47,50", 2, id="half a range"),
        pytest.param(["openb", TRACES, "--seeds", "9-1"], "has no seeds", 2, id="an empty range"),
        pytest.param(["philly", "no.csv", "--nodes", "0x8"], "1 to 100000 nodes with 1 to 64 GPUs", 1, id="no node"),
        pytest.param(["trace", TRACES / "openb_pod_list_tiny.csv"], ":1: JSON is malformed", 1, id="another form"),
    ],
)
def test_what_is_wrong_is_one_line(arguments: list[object], problem: str, code: int) -> None:
    done = simulate(*arguments)
    assert done.exit_code == code
    assert done.output.splitlines()[-1].startswith("Error: ")
    assert problem in done.output.splitlines()[-1]


@pytest.mark.parametrize("output", ["json", "table"])
def test_an_interrupt_keeps_what_was_finished(output: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, count = ReplayCluster.try_job, 0

    def interrupted(self: ReplayCluster, *arguments: Any) -> Any:
        nonlocal count
        count += 1
        if count == 70:
            raise KeyboardInterrupt
        return whole(self, *arguments)

    monkeypatch.setattr(ReplayCluster, "try_job", interrupted)
    done = simulate("openb", TRACES, "--policy", "bestfit", "--seeds", "1-9", "-o", output)
    assert done.exit_code == 130
    assert done.stderr == "interrupted\n"
    assert "bestfit" in done.stdout
    if output == "json":
        runs = [json.loads(line) for line in done.stdout.splitlines()]
        assert [run.get("complete", True) for run in runs] == [True, False]
