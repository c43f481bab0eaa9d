"""Takes the steps of the Dockerfile one by one on this machine, where no container engine runs.

Absolute paths of the steps become paths below a folder; `python` and `pip` are those of this machine. What the last
stage copies is what the image adds to its base.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.e2e.image.dockerfile import Instruction, Stage, is_in_context, parse

ROOT = Path(__file__).parents[3]
# Folders that the steps write to. A step that names another one would write outside of the folder, and is refused.
WRITTEN = ("/src", "/wheels", "/opt/kubenexus")
ABSOLUTE = re.compile(r"(?<![\w./*$-])/[a-z][\w./-]*")


class StepFailed(Exception):
    """A step of the Dockerfile ended with an error."""


class Steps:
    """The stages of the Dockerfile, built into a folder."""

    def __init__(self, folder: Path, root: Path = ROOT) -> None:
        self._folder, self._root = folder, root
        *self._before, self.last = parse((root / "Dockerfile").read_text(encoding="utf-8"))
        self._programs = folder / "programs"

    def take(self) -> Path:
        """Takes all steps. Returns the folder that stands for the root of the image."""
        self._put_programs()
        for stage in self._before:
            self._build(stage)
        return self._copy_between_stages()

    def _put_programs(self) -> None:
        self._programs.mkdir(parents=True)
        for name, words in {"python": "", "pip": "-m pip --disable-pip-version-check --quiet"}.items():
            script = self._programs / name
            script.write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n')
            script.chmod(0o755)

    def _build(self, stage: Stage) -> None:
        here = self._at("/")
        for each in stage.instructions:
            if each.name == "WORKDIR":
                here = self._at(each.text)
                here.mkdir(parents=True)
            elif each.name == "COPY":
                self._copy(each, here)
            elif each.name == "RUN":
                self._run(each.text, here)

    def _copy(self, step: Instruction, here: Path) -> None:
        *sources, target = step.text.split()
        for name in sources:
            source = self._root / name
            if source.is_dir():
                ignored = [file for file in source.rglob("*") if not is_in_context(file, self._root)]
                shutil.copytree(
                    source,
                    here / target,
                    ignore=lambda folder, names: [n for n in names if Path(folder, n) in ignored],  # noqa: B023
                )
            else:
                shutil.copy(source, here / target)

    def _run(self, command: str, here: Path) -> None:
        environment = {"PATH": f"{self._programs}:{os.environ['PATH']}", "HOME": str(self._folder)}
        environment |= {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_"))}
        done = subprocess.run(
            ["sh", "-c", self._moved(command)], cwd=here, env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise StepFailed(f"RUN {command}\n{done.stdout}{done.stderr}")

    def _moved(self, command: str) -> str:
        def move(match: re.Match[str]) -> str:
            path = match.group()
            if not path.startswith(WRITTEN):
                raise StepFailed(f"{path} is none of the folders that steps write to: {command}")
            return str(self._at(path))

        return ABSOLUTE.sub(move, command)

    def _copy_between_stages(self) -> Path:
        image = self._folder / "image"
        for each in self.last.instructions:
            if each.name == "COPY":
                _, source, target = each.text.split()
                shutil.copytree(self._at(source), image / target.lstrip("/"), symlinks=True)
        return image

    def _at(self, path: str) -> Path:
        return self._folder / "build" / path.lstrip("/")
