"""The kinds of work that a pod can be."""

import enum
from typing import Final


class WorkloadType(enum.StrEnum):
    """The five kinds of work. Batch and training are packed, the others are spread."""

    TRAINING = "training"
    INFERENCE = "inference"
    BATCH = "batch"
    SERVICE = "service"
    INTERACTIVE = "interactive"

    @property
    def packs(self) -> bool:
        return self in _PACKED


_PACKED: Final = frozenset({WorkloadType.TRAINING, WorkloadType.BATCH})
