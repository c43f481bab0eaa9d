"""Small files of a machine, read within bounds: a file that is huge, malformed, a device or a loop of links is skipped.

Nothing outside of the root is read, wherever links lead.
"""

import os
import re
import stat
from pathlib import Path
from typing import Final

from kubenexus.api.devices.draft import Warnings
from kubenexus.api.keys.lists import CpuList
from kubenexus.api.keys.values import quoted
from kubenexus.base.errors import Malformed

MAX_BYTES: Final = 64 << 10  # of a file; a page of sysfs has 4 KiB
MAX_NAMES: Final = 4096  # of a folder
_CPUS: Final = CpuList()
_NUMBER: Final = re.compile(r"-?(?:0x[0-9a-fA-F]{1,16}|[0-9]{1,19})")
_PARTS: Final = re.compile(r"([0-9]+)")


class HostFiles:
    """Files below a root, by their paths in it. What is missing is None or empty; what cannot be read is a warning."""

    def __init__(self, root: Path, warnings: Warnings) -> None:
        self._root = os.path.realpath(root)
        self.warnings = warnings

    def text(self, path: str) -> str | None:
        """Returns the text of a file without blanks around it."""
        found = self.resolved(path)
        try:
            return None if found is None else self._read(os.path.join(self._root, found))
        except OSError as error:
            self._warn(path, error.strerror or "cannot be read")
        except ValueError as error:  # UnicodeDecodeError, too
            self._warn(path, "is no text" if isinstance(error, UnicodeDecodeError) else str(error))
        return None

    def _read(self, path: str) -> str:
        # A pipe must not block the process.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise ValueError("is no file")
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise ValueError(f"has more than {MAX_BYTES} bytes")
        return content.decode("ascii").strip()

    def number(self, path: str, least: int, most: int) -> int | None:
        """Returns a whole number, decimal or after `0x`, within bounds."""
        text = self.text(path)
        if text is None:
            return None
        value = int(text, 16 if "0x" in text else 10) if _NUMBER.fullmatch(text) else None
        if value is not None and least <= value <= most:
            return value
        self._warn(path, f"must be a number from {least} to {most}, not {quoted(text)}")
        return None

    def cpus(self, path: str) -> tuple[int, ...]:
        """Returns CPU ids, or those of NUMA nodes, from a list such as `0-15,32-47`; none if the file is empty."""
        text = self.text(path)
        if not text:
            return ()
        try:
            return _CPUS.parse(text)
        except Malformed as error:
            self._warn(path, str(error))
            return ()

    def names(self, path: str) -> list[str]:
        """Returns the names in a folder, those with numbers in the order of these: node2 before node10."""
        found = self.resolved(path)
        if found is None:
            return []
        names: list[str] = []
        try:
            with os.scandir(os.path.join(self._root, found)) as entries:
                for entry in entries:
                    if len(names) >= MAX_NAMES:
                        self._warn(path, f"has more than {MAX_NAMES} entries; the others are not read")
                        break
                    names.append(entry.name)
        except OSError as error:
            self._warn(path, error.strerror or "cannot be read")
        return sorted(names, key=natural)

    def resolved(self, path: str) -> str | None:
        """Returns the path that links lead to, or None if there is nothing."""
        inside = self._root.rstrip(os.sep) + os.sep
        try:
            real = os.path.realpath(os.path.join(self._root, path), strict=True)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError) as error:
            self._warn(path, getattr(error, "strerror", None) or "cannot be followed")
            return None
        if real.startswith(inside):
            return real[len(inside) :]
        self._warn(path, "leads out of the root")
        return None

    def _warn(self, path: str, problem: str) -> None:
        self.warnings.add(f"{path if len(path) <= 200 else path[:200] + '...'}: {problem}")


def natural(name: str) -> list[tuple[bool, int, str]]:
    """Returns a key that sorts numbers within names by their values."""
    parts = [part for part in _PARTS.split(name) if part]
    return [
        (False, int(part), "") if part.isascii() and part.isdigit() and len(part) < 20 else (True, 0, part)
        for part in parts
    ]
