"""The container engine of this machine: the first of docker, podman and buildah that runs."""

import shutil
import subprocess
from pathlib import Path
from typing import Final

ENGINES: Final = ("docker", "podman")


class Engine:
    """Builds and runs images with the program of this name."""

    def __init__(self, program: str) -> None:
        self.program = program

    def build(self, folder: Path, tag: str) -> None:
        subprocess.run([self.program, "build", "--quiet", "--tag", tag, str(folder)], check=True)

    def size(self, tag: str) -> int:
        """The bytes of an image, unpacked."""
        shown = subprocess.run(
            [self.program, "image", "inspect", "--format", "{{.Size}}", tag], check=True, capture_output=True, text=True
        )
        return int(shown.stdout)

    def run(self, tag: str, *words: str) -> str:
        """Runs a command as the chart does: read-only, without capabilities, without network. Returns its output."""
        limits = ["--rm", "--read-only", "--cap-drop=ALL", "--network=none", "--security-opt=no-new-privileges"]
        done = subprocess.run([self.program, "run", *limits, tag, *words], check=True, capture_output=True, text=True)
        return done.stdout


def running() -> Engine | None:
    """Returns an engine that answers. A client without a server, as in many build environments, is none."""
    for program in ENGINES:
        if shutil.which(program):
            asked = subprocess.run([program, "info"], capture_output=True, check=False, timeout=60)
            if asked.returncode == 0:
                return Engine(program)
    return None
