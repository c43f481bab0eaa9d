"""Makes the cyclic garbage collector run rarely. Nearly all of our garbage is freed by reference counts, and each
collection would traverse all listed objects, which stay."""

import gc
from typing import Final

# A collection traverses the objects that were created since the last one of its generation: 4,096 in 1 ms, 80,000 in
# 20 ms. All objects are traversed after 40 million more, and only if a quarter of them is new. One of a million objects
# would hold the loop for 250 ms.
THRESHOLDS: Final = (4_096, 20, 500)


def freeze_after_import() -> None:
    """Called once after all imports: the collector then skips the modules."""
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)


def freeze_after_list() -> None:
    """Called once after all kinds were listed: the collector then skips these objects, too."""
    gc.collect()
    gc.freeze()
