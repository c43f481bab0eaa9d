"""The part of a card that a MIG device is, by the name of its profile (`1g.10gb`) and the model of the card."""

import functools
import re
from typing import Final

from kubenexus.api.devices.models import MAX_NAME, find_model, profile_memory

_COMPUTE: Final = re.compile(r"(?:[1-7]c\.)?([1-9])g\.")
_MOST_SLICES: Final = 7  # of the compute of a card; an A30 has four, which its memory shows


@functools.lru_cache(maxsize=256)
def mig_thousandths(profile: str, model: str) -> int:
    """Returns the part in thousandths: of the card's compute or of its memory, whichever is more. So the devices of a
    card that is divided to the full are one card together: seven `1g.10gb` as well as two `3g.40gb`. Returns all of
    it if the name is no profile."""
    match = _COMPUTE.match(profile) if len(profile) <= MAX_NAME else None
    if match is None:
        return 1000
    card = find_model(model)
    memory, total = profile_memory(profile), card.memory if card is not None else 0
    by_memory = memory / total if memory > 0 and total > 0 else 0.0
    return min(round(1000 * max(int(match[1]) / _MOST_SLICES, by_memory)), 1000)
