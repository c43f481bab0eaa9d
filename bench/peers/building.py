"""Programs of other projects, built from Go's module proxy into the user's cache, once for each set of pins.

`modules/<name>/go.mod` pins the version. Beside the programs lie the definitions of its kinds (`kinds/`), which come
out of the same module. Nothing of another project is in this repository.
"""

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from tests.e2e.controlplane.build import CannotBuild, check_go, go_build, module_sources, one_at_a_time

MODULES: Final = Path(__file__).parent / "modules"
KINDS: Final = "kinds"


class Module(NamedTuple):
    """What is built of one project.

    `programs` maps names to Go packages. `kinds` are patterns of files with CustomResourceDefinitions, within the
    module. `additions` maps a required module to files that its published version lacks, with their text.
    """

    name: str
    path: str
    programs: Mapping[str, str]
    kinds: tuple[str, ...] = ()
    additions: Mapping[str, Mapping[str, str]] = {}

    @property
    def pins(self) -> Path:
        return MODULES / self.name

    def version(self) -> str:
        """Returns the version that go.mod pins, without its v."""
        text = (self.pins / "go.mod").read_text(encoding="utf-8")
        found = re.search(rf"^require {re.escape(self.path)} v(\S+)$", text, re.MULTILINE)
        if not found:
            raise CannotBuild(f"{self.name}/go.mod does not require {self.path}")
        return found.group(1)

    def folder(self, env: Mapping[str, str] = os.environ) -> Path:
        """Returns the folder of the cache that has the programs, or will have them once they are built."""
        cache = Path(env.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        pins = [(self.pins / name).read_bytes() for name in ("go.mod", "go.sum")]
        said = b"\0".join([*pins, repr((dict(self.programs), self.kinds, self.additions)).encode()])
        return cache / "kubenexus" / "peers" / self.name / hashlib.sha256(said).hexdigest()[:16]


def provide(module: Module, env: Mapping[str, str] = os.environ) -> Path:
    """Builds a module if it is missing, and returns its folder. Raises CannotBuild."""
    folder = module.folder(env)
    if not is_complete(module, folder):
        check_go(f"building {module.name} needs Go", module.pins)
        with one_at_a_time(folder):
            if not is_complete(module, folder):
                _build(module, folder)
    return folder


def is_complete(module: Module, folder: Path) -> bool:
    """Returns whether a folder has all that is built."""
    return (folder / KINDS).is_dir() and all(os.access(folder / name, os.X_OK) for name in module.programs)


def _build(module: Module, folder: Path) -> None:
    """Builds into a folder beside, which gets its name only when everything is in it."""
    with tempfile.TemporaryDirectory(prefix=f"{folder.name}.building-", dir=folder.parent) as name:
        made, sources = Path(name) / "made", Path(name) / module.name
        (made / KINDS).mkdir(parents=True)
        _copy_kinds(module, made / KINDS)
        _write_sources(module, sources)
        for program, package in module.programs.items():
            go_build(sources, made / program, [package])
        made.rename(folder)


def _copy_kinds(module: Module, folder: Path) -> None:
    sources = module_sources(module.pins, module.path)
    for pattern in module.kinds:
        found = sorted(sources.glob(pattern))
        if not found:
            raise CannotBuild(f"{module.path} has no {pattern}")
        for file in found:
            (folder / file.name).write_bytes(file.read_bytes())  # not its mode: Go's cache is read-only


def _write_sources(module: Module, folder: Path) -> None:
    """Writes a module with the pins, and copies of those modules that something is added to."""
    folder.mkdir()
    text = (module.pins / "go.mod").read_text(encoding="utf-8")
    for path, files in module.additions.items():
        copy = folder / path.replace("/", "_")
        shutil.copytree(module_sources(module.pins, path), copy, copy_function=shutil.copyfile)
        for each in (copy, *(each for each in copy.rglob("*") if each.is_dir())):
            each.chmod(0o755)
        for name, content in files.items():
            (copy / name).write_text(content, encoding="utf-8")
        text = replaced(text, path, f"./{copy.name}")
    (folder / "go.mod").write_text(text, encoding="utf-8")
    (folder / "go.sum").write_bytes((module.pins / "go.sum").read_bytes())


def replaced(text: str, path: str, target: str) -> str:
    """Returns a go.mod in which `path` is replaced by another target than before. Raises CannotBuild."""
    changed, count = re.subn(rf"^(\s*(?:replace )?{re.escape(path)} => ).*$", rf"\g<1>{target}", text, flags=re.M)
    if count != 1:
        raise CannotBuild(f"go.mod does not replace {path} once")
    return changed
