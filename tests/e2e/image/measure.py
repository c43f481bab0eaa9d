"""How large a folder is: on disk, and as the compressed layer that a node pulls."""

import io
import tarfile
from pathlib import Path
from typing import Any, BinaryIO, cast


class _Counter(io.RawIOBase):
    """A file that keeps nothing but its length."""

    def __init__(self) -> None:
        self.length = 0

    def write(self, data: Any) -> int:
        self.length += len(data)
        return len(data)


def unpacked(folder: Path) -> int:
    return sum(file.lstat().st_size for file in folder.rglob("*") if not file.is_dir())


def packed(folder: Path) -> int:
    counter = _Counter()
    with tarfile.open(mode="w|gz", fileobj=cast(BinaryIO, counter)) as archive:
        archive.add(folder, arcname="/")
    return counter.length
