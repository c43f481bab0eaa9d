"""Files of entries that survive a crash: each entry has its length and a checksum, so a file that was cut anywhere is
read up to its last whole entry.

    file   = magic entry*
    entry  = length (4 bytes, little endian) crc32 (4 bytes) payload

The files of a recording are `recording-000001.knx`, ... in one folder. Together they stay below a number of bytes: the
oldest go first.
"""

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from kubenexus.base.errors import KubeNexusError

MAGIC = b"KNXREC1\n"
MAX_ENTRY = 1 << 28  # bytes; a length beyond it is not one
_BUFFER = 1 << 16
_PARTS = 8  # files of a full ring
_HEAD = 8  # bytes before the payload of an entry


class SegmentWriter:
    """Writes entries. `full` says when to begin another file; `begin` begins it and deletes the oldest."""

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self._folder, self._max = folder, max_bytes
        self._file: BinaryIO | None = None
        self._written = 0  # bytes of the current file
        self._counted = 0  # of these after the state at its start
        folder.mkdir(parents=True, exist_ok=True)
        self._number = max((number_of(path) for path in segment_files(folder)), default=0)

    @property
    def full(self) -> bool:
        """Whether another file is due. What a file begins with does not count: it may be larger than the part."""
        return self._counted >= self._max // _PARTS

    def begin(self) -> None:
        """Begins another file."""
        self.close()
        self._number += 1
        path = self._folder / f"recording-{self._number:06}.knx"
        self._file = path.open("wb", buffering=_BUFFER)
        self._file.write(MAGIC)
        self._written, self._counted = len(MAGIC), 0
        self._drop_oldest()

    def count_from_here(self) -> None:
        """Ends the part of the file that does not count."""
        self._counted = 0
        self._drop_oldest()

    def write(self, payload: bytes) -> None:
        """Appends an entry."""
        if self._file is None:
            return
        self._file.write(len(payload).to_bytes(4, "little") + zlib.crc32(payload).to_bytes(4, "little"))
        self._file.write(payload)
        self._written += _HEAD + len(payload)
        self._counted += _HEAD + len(payload)

    def flush(self) -> None:
        """Hands what is buffered to the kernel: the end of the process does not lose it then."""
        if self._file is not None:
            self._file.flush()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _drop_oldest(self) -> None:
        """Deletes files until the others fit. The current one stays."""
        older = segment_files(self._folder)[:-1]
        total = self._written + sum(path.stat().st_size for path in older)
        for path in older:
            if total + self._max // _PARTS <= self._max:
                return
            total -= path.stat().st_size
            path.unlink()


def segment_files(folder: Path) -> list[Path]:
    """Returns the files of a recording, the oldest first."""
    return sorted(folder.glob("recording-*.knx"), key=number_of)


def number_of(path: Path) -> int:
    text = path.stem.removeprefix("recording-")
    return int(text) if text.isdecimal() else 0


def read_entries(path: Path) -> Iterator[bytes]:
    """Yields the payloads of a file up to its last whole entry. Raises KubeNexusError if it is not such a file."""
    with path.open("rb") as file:
        magic = file.read(len(MAGIC))
        if magic != MAGIC:
            if MAGIC.startswith(magic):
                return  # cut within its first bytes
            raise KubeNexusError(f"{path}: not a recording, or one of another version")
        while True:
            head = file.read(_HEAD)
            length = int.from_bytes(head[:4], "little")
            if len(head) < _HEAD or length > MAX_ENTRY:
                return
            payload = file.read(length)
            if len(payload) < length or zlib.crc32(payload) != int.from_bytes(head[4:], "little"):
                return
            yield payload
