"""scripts/label-node.sh prints the same labels and annotations as discovery, as far as it goes."""

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from kubenexus.discovery.node_patch import node_patch
from kubenexus.discovery.read_machine import read_machine
from tests.discovery.machine_trees import description, make_tree, nvml_answers

SCRIPT = Path(__file__).parents[2] / "scripts" / "label-node.sh"
# Only in discovery.
FURTHER = ("islands", "topology", "fabric-type", "fabric-id", "bandwidth", "gpu.clique")


def printed(root: Path, programs: str = "/usr/bin:/bin") -> dict[str, dict[str, str]]:
    """Returns what the commands that the script prints would write, by verb."""
    env = {**os.environ, "ROOT": str(root), "PATH": programs}
    done = subprocess.run(["sh", str(SCRIPT), "n1"], capture_output=True, text=True, check=True, env=env)
    assert done.stderr == ""
    found: dict[str, dict[str, str]] = {"label": {}, "annotate": {}}
    for line in done.stdout.replace("\\\n", " ").splitlines():
        words = shlex.split(line)
        assert (words[0], *words[2:5]) == ("kubectl", "node", "n1", "--overwrite")
        found[words[1]] = dict(word.split("=", 1) for word in words[5:])
    return found


def nvidia_smi(folder: Path, machine: dict) -> str:
    """Makes a program that prints what NVIDIA's does about the cards of a machine."""
    rows = [(each["bus_id"], each["memory"] >> 20, each["name"]) for each in machine["nvml"]]
    program = folder / "nvidia-smi"
    whole = "\n".join(f"{bus}, {size}, {name}" for bus, size, name in rows)
    names = "\n".join(name for _, _, name in rows)
    program.write_text(f"#!/bin/sh\ncase $1 in *bus_id*) echo '{whole}';; *) echo '{names}';; esac\n")
    program.chmod(0o755)
    return f"{folder}:/usr/bin:/bin"


@pytest.mark.parametrize("name", ["dual-socket", "mi300x", "dgx-h100", "gb200-nvl72"])
def test_the_script_agrees_with_discovery(tmp_path: Path, name: str) -> None:
    machine = description(name)
    root = make_tree(tmp_path / "root", machine)
    programs = nvidia_smi(tmp_path, machine) if "nvml" in machine else "/usr/bin:/bin"
    found = printed(root, programs)
    wanted = node_patch(read_machine(root, nvml_answers(machine)))
    unknown = {"gpu.kubenexus.io/model"} if name == "mi300x" else set()
    expected = {key: value for key, value in wanted.labels.items() if not key.endswith(FURTHER) and key not in unknown}
    assert found["label"] == expected
    assert found["annotate"] == {key: text for key, text in wanted.annotations.items() if not key.endswith(FURTHER)}


def test_an_empty_machine_prints_nothing(tmp_path: Path) -> None:
    (tmp_path / "sys").mkdir()
    assert printed(tmp_path) == {"label": {}, "annotate": {}}
