"""`make kueue`: builds the Kueue that the end-to-end tests run beside, once for each set of pins.

It comes from Go's module proxy in the version that go.mod pins, into a folder of the user's cache: the program, and
beside it the manifests of its module (`crds/`, `webhooks.yaml`). KUEUE_ASSETS names another such folder, and nothing is
built. Two things differ from Kueue's own build:

    the tag `exclude_scheduler_library`  is Kueue's own, and leaves out the alpha scheduling simulator, whose module has
                                         no entry in the checksum database
    the folder of the metrics' key pair  is fixed in the program and outside of any folder of a test; here it is read
                                         from the environment (`CERTIFICATES`): main.go is made from Kueue's own at the
                                         time of the build, and no other file differs
"""

import hashlib
import os
import re
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests.e2e.controlplane.build import CannotBuild, check_go, go_build, module_sources, one_at_a_time

HERE = Path(__file__).parent
MODULE = "sigs.k8s.io/kueue"
PROGRAM = "kueue"
TAGS = "-tags=exclude_scheduler_library"
# The environment variable that names the folder of the metrics' key pair, and the text that it stands for.
CERTIFICATES = "KUEUE_METRICS_CERTIFICATES"
FIXED = 'metricsCertPath := "/etc/kueue/metrics/certs"'
FROM_ENVIRONMENT = f'metricsCertPath := os.Getenv("{CERTIFICATES}")'


def assets(env: Mapping[str, str] = os.environ) -> Path:
    """Returns the folder that has the program and its manifests, or will have them once they are built."""
    if given := env.get("KUEUE_ASSETS"):
        return Path(given)
    cache = Path(env.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    said = [*(file.read_bytes() for file in sorted(HERE.glob("go.*"))), TAGS.encode(), FROM_ENVIRONMENT.encode()]
    return cache / "kubenexus" / "kueue" / hashlib.sha256(b"\0".join(said)).hexdigest()[:16]


def version() -> str:
    """Returns the version that go.mod pins: `v0.19.2`."""
    found = re.search(rf"^\s*{re.escape(MODULE)} (v\S+)", (HERE / "go.mod").read_text(encoding="utf-8"), re.MULTILINE)
    assert found, f"go.mod does not require {MODULE}"
    return found.group(1)


def is_complete(folder: Path) -> bool:
    """Returns whether a folder has all that is built."""
    return os.access(folder / PROGRAM, os.X_OK) and (folder / "webhooks.yaml").is_file() and (folder / "crds").is_dir()


def provide(env: Mapping[str, str] = os.environ) -> Path:
    """Builds Kueue if it is missing, and returns its folder. Raises CannotBuild."""
    folder = assets(env)
    if is_complete(folder):
        return folder
    if env.get("KUEUE_ASSETS"):
        raise CannotBuild(f"KUEUE_ASSETS={folder} lacks {PROGRAM}, crds or webhooks.yaml")
    check_go("building Kueue needs Go (or name a folder in KUEUE_ASSETS)", HERE)
    with one_at_a_time(folder):
        if not is_complete(folder):
            _build(folder)
    return folder


def _build(folder: Path) -> None:
    """Builds into a folder beside, which gets its name only when everything is in it."""
    sources = module_sources(HERE, MODULE)
    with tempfile.TemporaryDirectory(prefix=f"{folder.name}.building-", dir=folder.parent) as name:
        made, module = Path(name) / "made", Path(name) / "module"
        made.mkdir()
        module.mkdir()
        _copy_manifests(sources / "config" / "components", made)
        _write_module(sources / "cmd" / "kueue" / "main.go", module)
        go_build(module, made / PROGRAM, ["."], more=[TAGS])
        made.rename(folder)


def _copy_manifests(components: Path, made: Path) -> None:
    (made / "crds").mkdir()
    for file in (components / "crd" / "bases").glob("*.yaml"):
        (made / "crds" / file.name).write_bytes(file.read_bytes())  # not its mode: Go's cache is read-only
    (made / "webhooks.yaml").write_bytes((components / "webhook" / "manifests.yaml").read_bytes())


def _write_module(main: Path, module: Path) -> None:
    """Writes a module with the pins of this folder, and a main.go that reads the folder of the metrics' key pair from
    the environment."""
    text = main.read_text(encoding="utf-8")
    if text.count(FIXED) != 1:
        raise CannotBuild(f"{main} does not have {FIXED}")
    (module / "main.go").write_text(text.replace(FIXED, FROM_ENVIRONMENT), encoding="utf-8")
    for name in ("go.mod", "go.sum"):
        (module / name).write_bytes((HERE / name).read_bytes())


if __name__ == "__main__":
    try:
        print(f"Kueue in {provide()}")
    except CannotBuild as problem:
        sys.exit(f"make kueue: {problem}")
