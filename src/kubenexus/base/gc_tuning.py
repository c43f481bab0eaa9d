"""How often Python looks for garbage that holds itself in circles: seldom. Nearly all of ours dies by reference count,
and each look would go through everything that was ever listed, which stays."""

import gc


def freeze_after_import() -> None:
    """Called once all is imported: modules stay, nobody need look at them again."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def freeze_after_list() -> None:
    """Called once everything has been listed: that stays as well."""
    gc.collect()
    gc.freeze()
