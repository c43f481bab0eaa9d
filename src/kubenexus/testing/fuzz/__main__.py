"""`python -m kubenexus.testing.fuzz`: exit 0 if every invariant held, else 1, with how to reproduce each violation."""

import argparse
import logging
import sys
import time
from collections.abc import Sequence

from kubenexus.testing.fuzz.fuzz_run import FuzzRun
from kubenexus.testing.fuzz.growing_run import GrowingRun
from kubenexus.testing.fuzz.report import cut, report, said
from kubenexus.testing.fuzz.stream import event
from kubenexus.testing.large.large_cluster import NODES


def main(arguments: Sequence[str] | None = None) -> int:
    told = _parser().parse_args(arguments)
    if told.grow:
        return _grow(told)
    fuzz, begin = FuzzRun(told.seed), time.perf_counter()
    if told.object is not None:
        return _one(fuzz, told.object)
    tally = fuzz.run(told.objects)
    for line in report(tally, told.seed, time.perf_counter() - begin):
        print(line)
    return 1 if tally.broken else 0


def _grow(told: argparse.Namespace) -> int:
    growing, before = GrowingRun(told.seed), logging.root.manager.disable
    logging.disable(logging.CRITICAL)  # each unusable object would be logged
    try:
        growing.run(range(told.rounds) if told.round is None else range(told.round, told.round + 1), told.nodes)
    finally:
        logging.disable(before)
    print(*growing.report(), sep="\n")
    return 1 if growing.broken else 0


def _one(fuzz: FuzzRun, number: int) -> int:
    """Runs all objects before this one without output, then this one."""
    fuzz.run(number)
    heard = event(fuzz.seed, number)
    print(f"object {number}: {heard.kind.__name__}, {heard.way}{', deleted' if heard.deleted else ''}")
    print(f"    {cut(heard.raw)}")
    fuzz.tally.violations.clear()
    fuzz.tally.broken.clear()
    fuzz.run(number + 1, first=number)
    for violation in fuzz.tally.violations:
        print(*said(violation, fuzz.seed, fuzz.tally.broken[violation.law]), sep="\n")
    return 1 if fuzz.tally.broken else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m kubenexus.testing.fuzz",
        description="Throw hostile objects at the decoder, the ledger and the planner, and check what must hold.",
    )
    add = parser.add_argument
    add("--objects", metavar="N", type=int, default=100_000, help="how many to throw (default: 100,000)")
    add("--seed", metavar="N", type=int, default=1, help="what they all follow from (default: 1)")
    add("--object", metavar="K", type=int, help="show only this one again, with all before it")
    add("--grow", action="store_true", help="grow objects instead, and time the turns of a whole scheduler")
    add("--rounds", metavar="N", type=int, default=1_000, help="with --grow: how many objects to grow (default: 1,000)")
    add("--round", metavar="K", type=int, help="with --grow: only this one")
    add("--nodes", metavar="N", type=int, default=NODES, help="with --grow: on so many nodes (default: 5,000)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
