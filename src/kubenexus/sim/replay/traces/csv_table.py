"""CSV files with named columns. What cannot be read is an error that names file, line and column."""

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

from kubenexus.base.errors import KubeNexusError, truncated

MAX_ROWS = 10_000_000
MAX_AMOUNT = 1 << 50  # of any number in a trace: a petabyte in bytes


class Row:
    """One line of a file, by column."""

    __slots__ = ("_cells", "_where")

    def __init__(self, cells: dict[str, str | None], where: str) -> None:
        self._cells, self._where = cells, where

    def text(self, column: str) -> str:
        return (self._cells.get(column) or "").strip()

    def number(self, column: str, *, least: float = 0) -> float:
        """Returns a number that is not negative. Raises KubeNexusError for anything else."""
        text = self.text(column)
        try:
            number = float(text)
        except ValueError:
            raise self.error(column, f"not a number: {truncated(text)!r}") from None
        if not least <= number <= MAX_AMOUNT:
            raise self.error(column, f"must be {least:g} to {MAX_AMOUNT}, is {truncated(text)}")
        return number

    def whole(self, column: str, *, most: int = MAX_AMOUNT) -> int:
        """Returns a whole number from 0 to `most`."""
        number = self.number(column)
        if number != int(number) or number > most:
            raise self.error(column, f"must be a whole number from 0 to {most}, is {truncated(self.text(column))}")
        return int(number)

    def error(self, column: str, problem: str) -> KubeNexusError:
        return KubeNexusError(f"{self._where}: column {column}: {problem}")


def read_rows(path: Path, columns: Sequence[str]) -> Iterator[Row]:
    """Yields the lines of a file. Raises KubeNexusError if it cannot be read or lacks one of `columns`."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            missing = [column for column in columns if column not in (reader.fieldnames or ())]
            if missing:
                what = "columns" if len(missing) > 1 else "column"
                raise KubeNexusError(f"{path}: {what} {', '.join(missing)} missing")
            for count, cells in enumerate(reader):
                where = f"{path}:{reader.line_num}"
                if None in cells or None in cells.values():
                    raise KubeNexusError(f"{where}: expected {len(reader.fieldnames or ())} cells")
                if count >= MAX_ROWS:
                    raise KubeNexusError(f"{where}: more than {MAX_ROWS} lines")
                yield Row(cells, where)
    except OSError as error:
        raise KubeNexusError(f"cannot read {path}: {error.strerror}") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise KubeNexusError(f"{path}: not a CSV file: {error}") from None
