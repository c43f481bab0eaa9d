"""`make helm`: builds the helm that renders and tests the chart, once for each set of pins.

It comes from Go's module proxy in the version that go.mod pins, into a folder of the user's cache. HELM names another
one, and nothing is built.
"""

import hashlib
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests.e2e.controlplane.build import CannotBuild, check_go, go_build, one_at_a_time

HERE = Path(__file__).parent
PACKAGE = "helm.sh/helm/v4/cmd/helm"


def program(env: Mapping[str, str] = os.environ) -> Path:
    """Returns where helm is, or will be once it is built."""
    if given := env.get("HELM"):
        return Path(given)
    cache = Path(env.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    pins = hashlib.sha256(b"\0".join(file.read_bytes() for file in sorted(HERE.glob("go.*")))).hexdigest()[:16]
    return cache / "kubenexus" / "helm" / pins / "helm"


def provide(env: Mapping[str, str] = os.environ) -> Path:
    """Builds helm if it is missing, and returns it. Raises CannotBuild."""
    helm = program(env)
    if os.access(helm, os.X_OK):
        return helm
    if env.get("HELM"):
        raise CannotBuild(f"HELM={helm} is no program")
    check_go("building helm needs Go (or name a helm in HELM)", HERE)
    with one_at_a_time(helm.parent):
        if not os.access(helm, os.X_OK):
            helm.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix="building-", dir=helm.parent) as folder:
                made = Path(folder) / "helm"
                go_build(HERE, made, [PACKAGE])
                made.rename(helm)
    return helm


if __name__ == "__main__":
    try:
        print(f"helm in {provide()}")
    except CannotBuild as problem:
        sys.exit(f"make helm: {problem}")
