"""The settings of what the scheduler does beside Kueue (`pluginConfig`, `Kueue`). All profiles share them."""

from collections.abc import Mapping
from typing import Any

import msgspec

from kubenexus.config.args import KUEUE


class KueueSettings(msgspec.Struct, frozen=True):
    """`admission_checks`: whether the scheduler answers AdmissionChecks of the controller `kubenexus.io/placement`."""

    admission_checks: bool = False


def kueue_settings(args: Mapping[str, Mapping[str, Any]]) -> KueueSettings:
    """Returns the settings of the first profile that has some, from the arguments by profile."""
    found: Mapping[str, Any] = next((each[KUEUE] for each in args.values() if KUEUE in each), {})
    return KueueSettings(found.get("admissionChecks", False))
