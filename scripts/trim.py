"""Removes what an installation does not need to run: tests and type stubs of other packages, and static libraries.

python scripts/trim.py FOLDER
"""

import shutil
import sys
from pathlib import Path

SUFFIXES = {".pyi", ".pyx", ".pxd", ".c", ".h", ".a"}
OURS = "kubenexus"


def trim(folder: Path) -> int:
    """Removes the files below each site-packages of `folder` that no running program reads. Returns their bytes."""
    gone = 0
    for packages in folder.rglob("site-packages"):
        for tests in sorted(packages.glob("*/**/tests")):
            if tests.is_dir() and not is_ours(tests, packages):
                gone += sum(file.stat().st_size for file in tests.rglob("*") if file.is_file())
                shutil.rmtree(tests)
        for file in packages.rglob("*"):
            if file.suffix in SUFFIXES and file.is_file() and not is_ours(file, packages):
                gone += file.stat().st_size
                file.unlink()
    return gone


def is_ours(path: Path, packages: Path) -> bool:
    return path.relative_to(packages).parts[0] == OURS


if __name__ == "__main__":
    print(f"{trim(Path(sys.argv[1])) / 1e6:.1f} MB removed")
