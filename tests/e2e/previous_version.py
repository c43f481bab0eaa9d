"""The version before this one, out of git: the newest tag that is not on HEAD, else a commit some way back."""

import io
import subprocess
import tarfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
COMMITS_BACK = 40  # while there are no tags


class NoHistory(Exception):
    """The clone has no earlier version; the message says what to do."""


def git(*words: str) -> bytes:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, check=False)
    if done.returncode:
        raise NoHistory(
            f"git {' '.join(words)}: {done.stderr.decode().strip()}; clone with history (git fetch --unshallow)"
        )
    return done.stdout


def commit() -> str:
    """The commit of the version before. Raises NoHistory."""
    if git("rev-parse", "--is-shallow-repository").decode().strip() == "true":
        raise NoHistory("this clone is shallow, so there is no version before; git fetch --unshallow")
    tags = git("tag", "--merged", "HEAD^", "--sort=-creatordate").decode().split()
    return git("rev-parse", f"{tags[0]}^{{commit}}" if tags else f"HEAD~{COMMITS_BACK}").decode().strip()


def unpack(folder: Path) -> tuple[str, Path]:
    """Writes the source and the chart of the version before into a folder. Returns its commit and the folder."""
    found = commit()
    with tarfile.open(fileobj=io.BytesIO(git("archive", "--format=tar", found, "src", "deploy"))) as archive:
        archive.extractall(folder, filter="data")
    return found, folder
