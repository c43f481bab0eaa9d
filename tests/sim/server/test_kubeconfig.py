"""The kubeconfig of a served cluster may have a token in it: only its owner may read it, whatever was there before."""

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from kubenexus.base.errors import KubeNexusError
from kubenexus.sim.apiserver.serving import ServedCluster, write_kubeconfig

SECRET = "token: secret\n"


class Door:
    def kubeconfig(self) -> str:
        return SECRET


SERVED = cast(ServedCluster, Door())


def nothing(path: Path) -> None:
    pass


def a_file(path: Path) -> None:
    path.write_text("old")
    path.chmod(0o644)


def one_for_all(path: Path) -> None:
    path.write_text("old")
    path.chmod(0o666)


def a_link(path: Path) -> None:
    target = path.with_name("elsewhere")
    a_file(target)
    path.symlink_to(target)


def a_link_to_nothing(path: Path) -> None:
    path.symlink_to(path.with_name("missing"))


@pytest.mark.parametrize(
    "there",
    [
        pytest.param(nothing, id="nothing is there"),
        pytest.param(a_file, id="a file that all may read"),
        pytest.param(one_for_all, id="a file that all may write"),
        pytest.param(a_link, id="a link to a file that all may read"),
        pytest.param(a_link_to_nothing, id="a link to nothing"),
    ],
)
def test_only_its_owner_may_read_it(tmp_path: Path, there: Callable[[Path], None]) -> None:
    path = tmp_path / "kubeconfig"
    there(path)
    write_kubeconfig(SERVED, path)
    assert stat.S_IMODE(path.lstat().st_mode) == 0o600
    assert path.read_text() == SECRET
    others = [each for each in tmp_path.iterdir() if each != path]
    assert all(each.read_text() == "old" for each in others), "nothing is left behind, and no link was followed"


def test_a_reader_that_has_the_old_file_open_sees_nothing_of_it(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    a_file(path)
    with path.open() as reader:
        write_kubeconfig(SERVED, path)
        assert reader.read() == "old"


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reading = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    write_kubeconfig(SERVED, path)
    assert os.read(reading, 100) == SECRET.encode()
    os.close(reading)


@pytest.mark.parametrize("where", [".", "missing/kubeconfig"], ids=["a folder", "in a folder that is missing"])
def test_what_cannot_be_written_is_one_line(tmp_path: Path, where: str) -> None:
    with pytest.raises(KubeNexusError, match="cannot write "):
        write_kubeconfig(SERVED, tmp_path / where)


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: Any) -> None:
    path = tmp_path / "kubeconfig"
    a_file(path)

    def full(*paths: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(KubeNexusError, match="No space left"):
        write_kubeconfig(SERVED, path)
    assert [each.name for each in tmp_path.iterdir()] == ["kubeconfig"]
    assert path.read_text() == "old"
