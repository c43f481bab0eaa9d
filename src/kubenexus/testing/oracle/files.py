"""Finds and opens the recorded files: gzipped JSON arrays, of cases or of small vectors."""

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
    """A path without anything to compare; the text says why."""


def find(paths: Iterable[str | Path]) -> tuple[list[Path], list[UnusablePath]]:
    """Returns the files at these paths (a folder stands for all its recorded files), and the errors of other paths."""
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
    """Returns the kind of a file, by its name."""
    return path.name.removesuffix(SUFFIX)


def items(path: Path) -> list[msgspec.Raw]:
    """Returns the elements of a file, not decoded yet: a broken one must not affect the others. Raises UnusablePath."""
    try:
        found = _ITEMS.decode(gzip.decompress(path.read_bytes()))
    except (OSError, EOFError, zlib.error, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnusablePath(f"{path}: cannot be read: {error}") from error
    if not found:
        raise UnusablePath(f"{path}: holds nothing")
    return found
