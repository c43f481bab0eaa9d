"""`make kueue`: the pinned version, and one line where something is missing."""

from pathlib import Path

import pytest

from tests.e2e.controlplane.build import CannotBuild
from tests.e2e.kueue import build


def test_the_version_is_the_pinned_one() -> None:
    assert f"{build.MODULE} v0.19.2" in (build.HERE / "go.mod").read_text(encoding="utf-8")


def test_a_folder_that_was_given_has_everything_or_is_refused(tmp_path: Path) -> None:
    env = {"KUEUE_ASSETS": str(tmp_path)}
    with pytest.raises(CannotBuild, match=r"^KUEUE_ASSETS=.* lacks kueue, crds or webhooks\.yaml$"):
        build.provide(env)
    (tmp_path / "crds").mkdir()
    (tmp_path / "webhooks.yaml").touch()
    (tmp_path / "kueue").touch(mode=0o755)
    assert build.provide(env) == tmp_path


def test_another_main_is_not_built_with_a_path_outside_of_the_test(tmp_path: Path) -> None:
    main = tmp_path / "main.go"
    main.write_text("package main")
    with pytest.raises(CannotBuild, match="does not have metricsCertPath"):
        build._write_module(main, tmp_path)
