"""The debug pages `/statusz`, `/version` and `/configz`."""

import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec

from kubenexus import __version__
from kubenexus.config.args import as_data
from kubenexus.config.v1 import KubeSchedulerConfiguration

# kube-scheduler registers its configuration under this name, not under its API group.
CONFIGURATION: Final = "componentconfig"
WARNING: Final = (
    "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is "
    "for debugging purposes only."
)


def statusz(component: str, started: float, now: float, paths: Sequence[str]) -> str:
    """Returns the page that Kubernetes components serve, with the version of Python in place of that of Go."""
    up = max(0, int(now - started))
    began = datetime.fromtimestamp(started, UTC).strftime("%a %b %e %H:%M:%S UTC %Y")
    return f"""
{component} statusz
{WARNING}

Started: {began}
Up: {up // 3600} hr {up // 60 % 60:02} min {up % 60:02} sec
Python version: {platform.python_version()}
Binary version: {__version__}

Paths: {" ".join(paths)}
"""


def version() -> bytes:
    """Returns the fields of Kubernetes' own `/version` that apply here."""
    major, minor, *_ = __version__.split(".")
    fields = {
        "major": major,
        "minor": minor,
        "gitVersion": f"v{__version__}",
        "compiler": platform.python_implementation(),
        "platform": f"{platform.system().lower()}/{platform.machine()}",
        "pythonVersion": platform.python_version(),
    }
    return msgspec.json.encode(fields)


def configz(configuration: KubeSchedulerConfiguration) -> bytes:
    """Returns the configuration in effect, with all defaults."""
    return msgspec.json.encode({CONFIGURATION: as_data(configuration)})
