"""`make image`: builds the image, or takes its steps one by one where no container engine runs."""

import shutil
import sys

from kubenexus import __version__
from tests.e2e.image import engine
from tests.e2e.image.measure import packed, unpacked
from tests.e2e.image.steps import ROOT, Steps


def main() -> None:
    tag = f"kubenexus:{__version__}"
    found = engine.running()
    if found is not None:
        found.build(ROOT, tag)
        print(f"{tag}: {found.size(tag) / 1e6:.0f} MB unpacked, built with {found.program}")
        return
    folder = ROOT / "build" / "image"
    shutil.rmtree(folder, ignore_errors=True)
    image = Steps(folder).take()
    print("no container engine runs here: the steps of the Dockerfile were taken one by one", file=sys.stderr)
    print(f"{image}: {unpacked(image) / 1e6:.0f} MB above the base image, {packed(image) / 1e6:.0f} MB as a layer")


if __name__ == "__main__":
    main()
