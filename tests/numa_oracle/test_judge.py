"""Our predictions about NUMA against recorded verdicts of the kubelet, and what the judge does with bad input."""

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kubenexus.testing.numa_oracle.__main__ import main
from kubenexus.testing.numa_oracle.compare import judge
from kubenexus.testing.numa_oracle.report import passed, report
from kubenexus.testing.numa_oracle.sample import choose, make

DATA = Path(__file__).parent / "data"
LESSONS = DATA / "lessons.json.gz"


def lessons() -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = msgspec.json.decode(gzip.decompress(LESSONS.read_bytes()))
    return entries


def written(folder: Path, entries: list[dict[str, Any]]) -> Path:
    path = folder / "lessons.json.gz"
    path.write_bytes(gzip.compress(msgspec.json.encode(entries)))
    return path


def test_every_verdict_is_predicted_from_the_state_and_nearly_every_one_from_what_a_scheduler_sees() -> None:
    tally = judge([DATA])
    assert tally.differences == []
    assert tally.compared > 4000
    assert tally.held - tally.compared < 30  # what depends on chance
    seen = tally.from_nrt["all"]
    assert seen.verdicts > 800
    assert seen.different < 10
    assert seen.false_rejects < 3
    assert tally.by_totals["all"].false_accepts > 100
    assert passed(tally)


def test_the_last_lines_are_the_sums(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(LESSONS), "--case", "restricted-fragmented"]) == 0
    *_, seen, exact = capsys.readouterr().out.splitlines()
    assert seen == "from what a scheduler sees: held 3, compared 3, different 0"
    assert exact.startswith("from the state: held ")
    assert exact.endswith("different 0")


def refuse(entry: dict[str, Any]) -> None:
    for verdict in entry["expected"].values():
        verdict.update(admitted=False, reason="TopologyAffinityError", by="topology")


def move(entry: dict[str, Any]) -> None:
    for verdict in entry["expected"].values():
        for container in (verdict.get("containers") or {}).values():
            container["affinity"] = [1]


@pytest.mark.parametrize("change", [refuse, move], ids=["an admitted pod is refused", "other NUMA nodes"])
def test_a_changed_recording_is_a_difference(tmp_path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    entries = [entry for entry in lessons() if entry["case"]["id"] == "restricted-fragmented"]
    for entry in entries:
        change(entry)
    path = written(tmp_path, entries)
    tally = judge([path])
    assert tally.differences
    assert not passed(tally)
    assert next(iter(report(tally))).startswith("different: restricted-fragmented ")
    assert main([str(path)]) == 1


def test_outcomes_that_depend_on_chance_are_held_but_not_compared(tmp_path: Path) -> None:
    entries = [entry for entry in lessons() if entry["case"]["id"] == "restricted-fragmented"]
    for verdict in entries[0]["expected"].values():
        verdict["others"] = [{"admitted": not verdict["admitted"]}]
    tally = judge([written(tmp_path, entries)])
    assert tally.held > 0
    assert tally.compared == 0


BROKEN = {
    "no gzip": b"no gzip",
    "half an object": gzip.compress(b"{"),
    "a case that is a number": gzip.compress(b'[{"case": 1}]'),
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_a_file_that_cannot_be_read_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: bytes
) -> None:
    path = tmp_path / "x.json.gz"
    path.write_bytes(text)
    assert main([str(path)]) == 1
    assert capsys.readouterr().err.startswith(f"numa-oracle: {path}: cannot be read: ")


def test_a_folder_without_recordings_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"numa-oracle: {tmp_path}: no *.json.gz in this folder\n"


def test_a_sample_has_every_feature_and_is_always_the_same(tmp_path: Path) -> None:
    assert choose([{("a",)}, {("a",)}, {("b",)}], share=0) == [0, 2]
    for name in ("one", "two"):
        assert [*make(DATA, tmp_path / name)]
    one, two = ({file.name: file.read_bytes() for file in (tmp_path / name).iterdir()} for name in ("one", "two"))
    assert one == two
