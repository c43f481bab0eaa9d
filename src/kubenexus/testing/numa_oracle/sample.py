"""`python -m kubenexus.testing.numa_oracle.sample FULL OUT`: writes a sample of recorded verdicts, always the same."""

import argparse
import gzip
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from kubenexus.testing.numa_oracle.cases import SUFFIX

OFTEN = 1  # every feature is in so many cases of its file, at least
SHARE = 0.06
LESSONS = "lessons"  # the kind of hand-made cases, each for one habit of the kubelet: all are in the sample


def make(full: Path, out: Path, share: float = SHARE) -> Iterator[str]:
    """Writes the sample of each file of a folder, and yields a line about each."""
    out.mkdir(parents=True, exist_ok=True)
    for file in sorted(full.glob(f"*{SUFFIX}")):
        entries: list[dict[str, Any]] = msgspec.json.decode(gzip.decompress(file.read_bytes()))
        # The verdicts of another scheduler plugin, the events and the hints are not compared.
        for entry in entries:
            entry.pop("nrtMatch", None)
            entry["case"].pop("events", None)
            for verdict in entry["expected"].values():
                verdict.pop("hints", None)
        chosen = choose([set(features(entry)) for entry in entries], share)
        text = msgspec.json.encode([entries[index] for index in chosen])
        (out / file.name).write_bytes(gzip.compress(text, mtime=0))
        yield f"{file.name.removesuffix(SUFFIX)}: {len(chosen)} of {len(entries)}"


def features(entry: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yields what a case exercises: combinations of configuration and outcome."""
    kubelet = entry["case"]["kubelet"]
    policy = kubelet["topologyManagerPolicy"]
    managers = (kubelet["cpuManagerPolicy"], kubelet["memoryManagerPolicy"])
    options = {**(kubelet.get("topologyManagerPolicyOptions") or {}), **(kubelet.get("cpuManagerPolicyOptions") or {})}
    if entry["case"]["kind"] == LESSONS:
        yield ("lesson", entry["case"]["id"])
    yield ("managers", policy, *managers)
    yield ("options", policy, *sorted(name for name, value in options.items() if value == "true"))
    for verdict in entry["expected"].values():
        reason = verdict.get("reason", "admitted")
        yield ("outcome", policy, kubelet["topologyManagerScope"], reason)
        yield ("by managers", *managers, reason, verdict.get("qos", ""))
        yield ("chance", str(bool(verdict.get("others"))))


def choose(features: Sequence[set[tuple[str, ...]]], share: float, seed: int = 1) -> list[int]:
    """Returns the positions of a sample that has every feature several times, filled up at random."""
    have: Counter[tuple[str, ...]] = Counter()
    chosen: list[int] = []
    for index, each in enumerate(features):
        if any(have[feature] < OFTEN for feature in each):
            chosen.append(index)
            have.update(each)
    others = [index for index in range(len(features)) if index not in set(chosen)]
    random.Random(seed).shuffle(others)
    return sorted([*chosen, *others[: max(int(share * len(features)) - len(chosen), 0)]])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m kubenexus.testing.numa_oracle.sample", description=__doc__)
    parser.add_argument("full", type=Path, help="a folder of recorded verdicts")
    parser.add_argument("out", type=Path, help="where to write")
    told = parser.parse_args(arguments)
    for line in make(told.full, told.out):
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
