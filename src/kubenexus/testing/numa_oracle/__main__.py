"""`python -m kubenexus.testing.numa_oracle PATH...`: exit 0 if our predictions are as good as promised, else 1."""

import argparse
import sys
from collections.abc import Sequence

from kubenexus.testing.numa_oracle.cases import UnusableRecording
from kubenexus.testing.numa_oracle.compare import judge
from kubenexus.testing.numa_oracle.report import passed, report


def main(arguments: Sequence[str] | None = None) -> int:
    told = _parser().parse_args(arguments)
    try:
        tally = judge(told.paths, told.case)
    except UnusableRecording as error:
        print(f"numa-oracle: {error}", file=sys.stderr)
        return 1
    for line in report(tally, told.max_differences):
        print(line)
    return 0 if passed(tally) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m kubenexus.testing.numa_oracle",
        description="Compare our predictions about NUMA with recorded verdicts of the kubelet.",
    )
    parser.add_argument("paths", metavar="PATH", nargs="+", help="a file KIND.json.gz, or a folder of them")
    parser.add_argument("--case", metavar="ID", action="append", default=[], help="judge this case only")
    parser.add_argument("--max-differences", metavar="N", type=int, default=10, help="how many to print (default: 10)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
