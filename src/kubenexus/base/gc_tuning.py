"""Makes the cyclic garbage collector run rarely. Nearly all of our garbage is freed by reference counts, and each
collection would traverse all listed objects, which stay."""

import gc


def freeze_after_import() -> None:
    """Called once after all imports: the collector then skips the modules."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def freeze_after_list() -> None:
    """Called once after all kinds were listed: the collector then skips these objects, too."""
    gc.collect()
    gc.freeze()
