"""What the Dockerfile promises: one base that can be pinned, no root, no shell to start, no tools left behind."""

from pathlib import Path

import pytest

from kubenexus import __version__
from tests.e2e.image.dockerfile import instructions, is_in_context, parse
from tests.e2e.image.steps import StepFailed, Steps

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "Dockerfile").read_text(encoding="utf-8")
BAKE = (ROOT / "docker-bake.hcl").read_text(encoding="utf-8")


def test_every_stage_has_the_one_base_so_that_one_digest_pins_all() -> None:
    pinned = "python:3.13-slim-trixie@sha256:" + "0" * 64
    assert {stage.base for stage in parse(TEXT)} == {"python:3.13-slim-trixie"}
    (default,) = [line for line in TEXT.splitlines() if line.startswith("ARG PYTHON=")]
    assert {stage.base for stage in parse(TEXT.replace(default, f"ARG PYTHON={pinned}"))} == {pinned}
    assert "args       = { PYTHON = PYTHON }" in BAKE
    assert default.removeprefix("ARG PYTHON=") in BAKE


def test_it_is_built_for_two_architectures() -> None:
    assert 'platforms  = ["linux/amd64", "linux/arm64"]' in BAKE
    assert "type=sbom" in BAKE
    assert f'default = "kubenexus:{__version__}"' in BAKE


def test_the_last_stage_runs_nothing_has_no_root_and_needs_no_shell() -> None:
    last = parse(TEXT)[-1]
    assert [each.name for each in last.instructions] == ["COPY", "ENV", "USER", "EXPOSE", "ENTRYPOINT", "CMD"]
    assert (last.words("ENTRYPOINT"), last.words("CMD")) == (["kubenexus"], ["run"])
    assert int(last.last("USER").split(":")[0]) > 0


@pytest.mark.parametrize(
    ("path", "inside"),
    [
        pytest.param("src/kubenexus/__init__.py", True, id="the source"),
        pytest.param("src/kubenexus/__pycache__/x.pyc", False, id="not what was compiled here"),
        pytest.param("tests/conftest.py", False, id="not the tests"),
        pytest.param("scripts/sbom.py", True, id="the script that lists the packages"),
    ],
)
def test_the_context_of_a_build_is_what_is_copied(path: str, inside: bool) -> None:
    assert is_in_context(ROOT / path, ROOT) is inside


def test_what_is_not_known_is_an_error() -> None:
    with pytest.raises(ValueError, match="not known: HEALTHCHECK"):
        instructions("FROM x\nHEALTHCHECK NONE\n")


def test_a_step_that_would_write_elsewhere_is_refused(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FROM x AS build\nRUN touch /etc/passwd\nFROM x\n")
    with pytest.raises(StepFailed, match="/etc/passwd is none of the folders"):
        Steps(tmp_path / "out", tmp_path).take()


def test_a_step_that_fails_is_named(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FROM x AS build\nWORKDIR /src\nRUN echo no && false\nFROM x\n")
    with pytest.raises(StepFailed, match="RUN echo no && false\nno"):
        Steps(tmp_path / "out", tmp_path).take()
