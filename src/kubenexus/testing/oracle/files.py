"""Finding and opening the recorded files: gzipped JSON arrays, of cases or of small vectors."""

import gzip
import zlib
from collections.abc import Iterable
from pathlib import Path

import msgspec

from kubenexus.base.errors import KubeNexusError

SUFFIX = ".json.gz"
VECTORS = "vectors-"

_ITEMS = msgspec.json.Decoder(list[msgspec.Raw])


class UnusablePath(KubeNexusError):
    """A path from which nothing can be judged; the text says which and why."""


def find(paths: Iterable[str | Path]) -> tuple[list[Path], list[UnusablePath]]:
    """The files at these paths (a folder stands for all its recorded files), and the paths that lead nowhere."""
    files: list[Path] = []
    problems: list[UnusablePath] = []
    for path in map(Path, paths):
        found = sorted(path.glob(f"*{SUFFIX}")) if path.is_dir() else [path]
        if not path.exists():
            problems.append(UnusablePath(f"{path}: no such file or folder"))
        elif not found:
            problems.append(UnusablePath(f"{path}: no *{SUFFIX} in this folder"))
        else:
            files.extend(file for file in found if file not in files)
    return files, problems


def kind_of(path: Path) -> str:
    """The kind a file holds, by its name."""
    return path.name.removesuffix(SUFFIX)


def items(path: Path) -> list[msgspec.Raw]:
    """The elements of a file, not looked into yet: one that is broken must not spoil the others."""
    try:
        found = _ITEMS.decode(gzip.decompress(path.read_bytes()))
    except (OSError, EOFError, zlib.error, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnusablePath(f"{path}: cannot be read: {error}") from error
    if not found:
        raise UnusablePath(f"{path}: holds nothing")
    return found
