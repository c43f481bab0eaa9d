"""Processes the files on several processes; a bad element does not affect the others."""

import multiprocessing
import os
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path

import msgspec

from kubenexus.testing.oracle import answer_counts
from kubenexus.testing.oracle.cases import compare_case
from kubenexus.testing.oracle.cluster import Item
from kubenexus.testing.oracle.comparison_counts import ComparisonCounts, Key
from kubenexus.testing.oracle.files import VECTORS, UnusablePath, find, items, kind_of
from kubenexus.testing.oracle.upstream import BuiltProfile
from kubenexus.testing.oracle.vectors import compare_vector

_BYTES_PER_TASK = 1_000_000  # of a compressed file: some seconds of work
_ITEM = msgspec.json.Decoder(Item)


class Task(msgspec.Struct, frozen=True):
    """Every `parts`-th element of a file, beginning with `part`."""

    path: Path
    part: int = 0
    parts: int = 1
    wanted: frozenset[str] = frozenset()
    most: int = 3


def judge(
    paths: Iterable[str | Path],
    *,
    only: Iterable[str] = (),
    cases: Iterable[str] = (),
    most: int = 3,
    jobs: int | None = 1,
) -> ComparisonCounts:
    """Compares all elements at the paths, restricted to the kinds `only` and the named cases, if any.

    Uses `jobs` processes; None means one for each CPU. Keeps `most` differences of each kind, aspect and plugin.
    """
    files, problems = find(paths)
    kinds, whole = frozenset(only), ComparisonCounts("", most=most)
    whole.problems = [str(problem) for problem in problems]
    unknown = sorted(kinds - set(map(kind_of, files)))
    whole.problems += [f"no file of kind {kind!r} among the paths" for kind in unknown]
    tasks = [task for file in files if not kinds or kind_of(file) in kinds for task in _split(file, cases, most)]
    for part in _run_all(tasks, jobs or os.cpu_count() or 1):
        whole.add(part)
    if not whole.held and not whole.problems:
        whole.problems.append("no such case in these files" if cases else "nothing to judge")
    whole.problems = list(dict.fromkeys(whole.problems))
    return whole


def _split(file: Path, cases: Iterable[str], most: int) -> Iterator[Task]:
    parts = 1 + (file.stat().st_size // _BYTES_PER_TASK if file.is_file() else 0)
    for part in range(parts):
        yield Task(file, part, parts, frozenset(cases), most)


def _run_all(tasks: list[Task], jobs: int) -> Iterator[ComparisonCounts]:
    """Yields the results in the order of the tasks, regardless of which finishes first."""
    if jobs <= 1 or len(tasks) <= 1:
        yield from map(run, tasks)
        return
    # Spawned, not forked: the same on every platform, and no threads are left behind in a child.
    with ProcessPoolExecutor(min(jobs, len(tasks)), multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(run, tasks)


@cache
def _built() -> BuiltProfile:
    return BuiltProfile()


def run(task: Task) -> ComparisonCounts:
    """Runs one task; called in a worker."""
    kind = kind_of(task.path)
    tally = ComparisonCounts(kind, most=task.most)
    try:
        found = items(task.path)
    except UnusablePath as problem:
        tally.problems.append(str(problem))
        return tally
    look = _vector if kind.startswith(VECTORS) else _case
    for index in range(task.part, len(found), task.parts):
        look(found[index], tally.within(f"{kind}[{index}]"), task.wanted, tally)
    return tally


def _case(raw: msgspec.Raw, part: ComparisonCounts, wanted: frozenset[str], tally: ComparisonCounts) -> None:
    try:
        item = _ITEM.decode(raw)
        part.case = item.case.id
        if wanted and part.case not in wanted:
            return
        nodes = len(item.case.objects.get("nodes", []))
        part.held = answer_counts.in_case(part.kind, nodes, msgspec.json.decode(item.expected))
        compare_case(item, part, _built())
    except Exception as error:
        part = _failed(part, error)
    tally.add(part)


def _vector(raw: msgspec.Raw, part: ComparisonCounts, wanted: frozenset[str], tally: ComparisonCounts) -> None:
    if wanted and part.case not in wanted:
        return
    try:
        vector = msgspec.json.decode(raw)
        part.held = answer_counts.in_vector(part.kind, vector)
        compare_vector(vector, part)
    except Exception as error:
        part = _failed(part, error)
    tally.add(part)


def _failed(part: ComparisonCounts, error: Exception) -> ComparisonCounts:
    """Returns the counts of a case that raised: one difference, and the rest as not compared."""
    key, tally = Key(part.kind, "case"), part.within(part.case)
    tally.held = part.held or Counter({key: 1})
    tally.not_compared = tally.held - Counter({key: 1})
    tally.compared[key] = 1
    where = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{Path(where.filename).name}:{where.lineno}"
    tally.differs(key, f"{type(error).__name__}: {error} (at {place})", "an answer")
    return tally
