"""`kubenexus config`: every problem and exit 1, or `valid`, what it means, and exit 0."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kubenexus.cli import main
from kubenexus.config import InvalidConfiguration, load, validate
from kubenexus.plugins import BUILT_IN
from tests.config.builders import HEAD


def run(*arguments: str, given: str | bytes = "") -> Result:
    return CliRunner().invoke(main, ["config", *arguments], input=given)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config.yaml"


def test_a_valid_file_is_summed_up(file: Path) -> None:
    file.write_text(
        HEAD
        + "percentageOfNodesToScore: 5\n"
        + "profiles: [{schedulerName: a}, {schedulerName: b, pluginConfig: [{name: KubeNexus, args: {seed: 7}}]}]"
    )
    result = run("validate", str(file))
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "valid"
    assert lines[1].startswith("profile a: ")
    assert lines[1].endswith(" plugins; ties seeded")
    assert lines[2].endswith("; ties seeded, seed 7")
    assert lines[3] == "note: percentageOfNodesToScore: has no effect: all nodes are scored, always"


def test_every_problem_of_a_wrong_file_is_printed(file: Path) -> None:
    file.write_text(
        HEAD + "parallelism: 0\nprofiles: [{plugins: {score: {enabled: [{name: NodeName}]}}}]\nextenders: [{}]"
    )
    result = run("validate", str(file))
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [str(problem) for problem in validate(file, BUILT_IN)]
    assert result.stderr == "3 problems\n"


def test_one_problem_is_one_problem(file: Path) -> None:
    file.write_text("")
    result = run("validate", str(file))
    assert (result.exit_code, result.stdout, result.stderr) == (1, "the file is empty\n", "1 problem\n")


def test_a_file_that_is_not_there(file: Path) -> None:
    result = run("validate", str(file))
    assert result.exit_code == 1
    assert result.stderr == f"Error: cannot read {file}: No such file or directory\n"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        pytest.param(b"apiVersion: \xff\xfe", "the file is not UTF-8: ", id="not UTF-8"),
        pytest.param(b"a: [", "line 2: cannot be parsed: ", id="not YAML"),
        pytest.param(b"", "the file is empty", id="nothing"),
        pytest.param(HEAD.encode() + b"parallelism: 0", "parallelism: Invalid value: 0: ", id="a wrong value"),
    ],
)
def test_who_starts_with_a_wrong_file_reads_its_name(file: Path, content: bytes, problem: str) -> None:
    file.write_bytes(content)
    result = CliRunner().invoke(main, ["run", "--config", str(file)])
    assert result.exit_code == 1
    assert result.stderr.startswith(f"Error: {file}: {problem}")
    with pytest.raises(InvalidConfiguration) as caught:
        load(file, BUILT_IN)
    assert str(caught.value).startswith(f"{file}: {problem}")


def test_the_defaults_are_valid() -> None:
    printed = run("defaults")
    assert printed.exit_code == 0
    assert printed.stdout.startswith(HEAD)
    checked = run("validate", "-", given=printed.stdout)
    assert checked.exit_code == 0
    assert checked.stdout.startswith("valid\nprofile kubenexus-scheduler: ")


def test_standard_input_may_be_anything() -> None:
    result = run("validate", "-", given=b"\xff\xfe")
    assert result.exit_code == 1
    assert result.stdout.startswith("the file is not UTF-8")
