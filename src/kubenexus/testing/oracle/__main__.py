"""`python -m kubenexus.testing.oracle PATH...`: exit 0 if everything that could be compared is equal, else 1."""

import argparse
import sys
from collections.abc import Sequence

from kubenexus.testing.oracle.compare_run import judge
from kubenexus.testing.oracle.report import report


def main(arguments: Sequence[str] | None = None) -> int:
    told = _parser().parse_args(arguments)
    tally = judge(told.paths, only=told.only, cases=told.case, most=told.max_differences, jobs=told.jobs)
    for line in report(tally, detail=told.detail):
        print(line)
    return 0 if tally.agreed else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m kubenexus.testing.oracle",
        description="Compare our answers with the recorded ones of Kubernetes' own scheduler plugins.",
    )
    add = parser.add_argument
    add("paths", metavar="PATH", nargs="+", help="a file KIND.json.gz or vectors-*.json.gz, or a folder of them")
    add("--only", metavar="KIND", action="append", default=[], help="judge this kind only (may be repeated)")
    add("--case", metavar="ID", action="append", default=[], help="judge this case only (may be repeated)")
    add("--detail", action="store_true", help="a line for each kind, aspect and plugin")
    add("--jobs", metavar="N", type=int, help="processes to use (default: one for each CPU)")
    add("--max-differences", metavar="N", type=int, default=3, help="how many to print of each sort (default: 3)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
