"""`python -m kubenexus.testing.oracle.sample FULL OUT`: chooses a sample of recorded verdicts.

Of each file it takes first the elements with features that the chosen ones lack, those with the most such features for
their size first. Then it adds random others, with a fixed seed, up to a share of the file's size. The same full set
gives the same sample everywhere. `index.json` describes the content of the full set and of the sample.
"""

import argparse
import gzip
import random
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from kubenexus.base.errors import KubeNexusError
from kubenexus.testing.oracle import answer_counts
from kubenexus.testing.oracle.features import Feature, Verdict, of_case, of_vector, verdicts
from kubenexus.testing.oracle.files import SUFFIX, VECTORS, find, items, kind_of

INDEX = "index.json"
SEED = 1
OFTEN = 6  # a refusal that only one case shows may be right by chance


class Size(msgspec.Struct, frozen=True):
    """The amount of one kind. An answer is what `make oracle` counts as held."""

    cases: int
    pods: int
    answers: int


class Kind(msgspec.Struct, frozen=True):
    """One file."""

    full: Size
    sample: Size


class Reason(msgspec.Struct, frozen=True):
    """One refusal without names of objects, and how often it is recorded."""

    point: str
    plugin: str
    code: str
    reason: str
    full: int
    sample: int


class Index(msgspec.Struct, frozen=True):
    """What a sample was made from, and what it holds of that."""

    kinds: dict[str, Kind]
    reasons: list[Reason]


def choose(features: Sequence[set[Feature]], sizes: Sequence[int], share: float, seed: int = SEED) -> list[int]:
    """Returns the indexes of a sample, in order.

    It has every feature at least once and every verdict in `OFTEN` elements, or in all that have it if they are fewer.
    Random elements follow, up to `share` of the sum of sizes.
    """
    there = Counter(feature for each in features for feature in each)
    due = {feature: min(number, OFTEN if isinstance(feature, Verdict) else 1) for feature, number in there.items()}
    chosen: set[int] = set()
    others = set(range(len(features)))
    while due:
        best = max(others, key=lambda i: (sum(feature in due for feature in features[i]) / sizes[i], -i))
        chosen.add(best)
        others.remove(best)
        for feature in features[best] & due.keys():
            due[feature] -= 1
            if not due[feature]:
                del due[feature]
    room = share * sum(sizes) - sum(sizes[index] for index in chosen)
    drawn = sorted(others)
    random.Random(seed).shuffle(drawn)
    for index in drawn:
        if sizes[index] <= room:
            room -= sizes[index]
            chosen.add(index)
    return sorted(chosen)


def make(full: Path, out: Path, share: float) -> Index:
    """Writes the sample of every file in `full` to the folder `out`, and its index. Raises KubeNexusError."""
    files, problems = find([full])
    if problems:
        raise problems[0]
    out.mkdir(parents=True, exist_ok=True)
    kinds: dict[str, Kind] = {}
    before: Counter[Verdict] = Counter()
    after: Counter[Verdict] = Counter()
    for file in files:
        raws, kind = items(file), kind_of(file)
        decoded = [msgspec.json.decode(raw) for raw in raws]
        look = of_vector if kind.startswith(VECTORS) else of_case
        chosen = choose([look(each) for each in decoded], [len(raw) for raw in raws], share)
        _write(out / file.name, [raws[index] for index in chosen])
        picked = [decoded[index] for index in chosen]
        kinds[kind] = Kind(size_of(kind, decoded), size_of(kind, picked))
        before.update(reasons_of(kind, decoded))
        after.update(reasons_of(kind, picked))
    index = Index(kinds, [Reason(*verdict, before[verdict], after[verdict]) for verdict in sorted(before)])
    (out / INDEX).write_bytes(msgspec.json.format(msgspec.json.encode(index), indent=1) + b"\n")
    return index


def read_index(folder: Path) -> Index:
    return msgspec.json.decode((folder / INDEX).read_bytes(), type=Index)


def size_of(kind: str, elements: list[dict[str, Any]]) -> Size:
    if kind.startswith(VECTORS):
        return Size(len(elements), 0, sum(answer_counts.in_vector(kind, each).total() for each in elements))
    pods = sum(len(each["case"]["incoming"]) for each in elements)
    counted = (
        answer_counts.in_case(kind, len(each["case"]["objects"].get("nodes", [])), each["expected"])
        for each in elements
    )
    return Size(len(elements), pods, sum(each.total() for each in counted))


def reasons_of(kind: str, elements: list[dict[str, Any]]) -> Counter[Verdict]:
    if kind.startswith(VECTORS):
        return Counter()
    return Counter(verdict for each in elements for verdict in verdicts(each["expected"]))


def _write(file: Path, raws: list[msgspec.Raw]) -> None:
    # Without the time of writing, so that the same sample is the same file.
    file.write_bytes(gzip.compress(b"[" + b",\n".join(map(bytes, raws)) + b"]\n", 9, mtime=0))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m kubenexus.testing.oracle.sample", description="Choose a sample of recorded verdicts."
    )
    parser.add_argument("full", metavar="FULL", type=Path, help=f"a folder of recorded files, *{SUFFIX}")
    parser.add_argument("out", metavar="OUT", type=Path, help="the folder to write to")
    parser.add_argument("--share", type=float, default=0.2, help="of each file, by size (default: 0.2)")
    given = parser.parse_args(arguments)
    try:
        index = make(given.full, given.out, given.share)
    except KubeNexusError as problem:
        print(f"sample: {problem}", file=sys.stderr)
        return 1
    for kind, sizes in index.kinds.items():
        print(f"{kind}: {sizes.sample.cases} of {sizes.full.cases}, {sizes.sample.answers:,} answers")
    return 0


if __name__ == "__main__":
    sys.exit(main())
