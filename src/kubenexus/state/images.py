"""Container images on nodes: which nodes have an image, and its size."""

from itertools import islice

import numpy as np

from kubenexus.api.core import ContainerImage
from kubenexus.base.arrays import BoolColumn

# Names read of one node. Kubelets report the fifty largest images by default, each with two names.
MAX_NAMES = 4096


class Image:
    """An image. `size` is what the first node that had it reported, as in upstream's cache."""

    __slots__ = ("name", "rows", "size")

    def __init__(self, name: str, size: int) -> None:
        self.name = name
        self.size = size
        self.rows: set[int] = set()


class ImageColumns:
    """The images of all rows. Only `NodeColumns` writes here."""

    def __init__(self) -> None:
        self._images: dict[str, Image] = {}
        self._of_row: dict[int, tuple[Image, ...]] = {}

    @property
    def any(self) -> bool:
        """Whether any node reports an image."""
        return bool(self._images)

    def set(self, row: int, images: list[ContainerImage]) -> bool:
        """Replaces the images of a row and returns whether they changed. Kubelets report often and change rarely, so
        only the difference is written."""
        if not images and row not in self._of_row:
            return False
        names = ((name, image.size_bytes) for image in images for name in image.names)
        sizes = dict(reversed(list(islice(names, MAX_NAMES))))
        before = self.of_row(row)
        for old in self._of_row.pop(row, ()):
            if old.name not in sizes or old.rows == {row}:
                self._leave(old, row)
        if sizes:
            self._of_row[row] = tuple(self._enter(name, size, row) for name, size in sizes.items())
        return self.of_row(row) != before

    def _enter(self, name: str, size: int, row: int) -> Image:
        image = self._images.get(name)
        if image is None:
            image = self._images[name] = Image(name, size)
        image.rows.add(row)
        return image

    def _leave(self, image: Image, row: int) -> None:
        image.rows.discard(row)
        if not image.rows:
            del self._images[image.name]

    def find(self, name: str) -> Image | None:
        return self._images.get(name)

    def of_row(self, row: int) -> list[tuple[str, int]]:
        """Returns names and sizes of the images on a row, for the digest."""
        return sorted((image.name, image.size) for image in self._of_row.get(row, ()))

    def column(self, image: Image, size: int) -> BoolColumn:
        """Returns a mask of the rows that have the image."""
        has = np.zeros(size, np.bool_)
        has[list(image.rows)] = True
        return has
