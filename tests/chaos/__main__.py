"""`make chaos`: many seeds against one control plane, a line for each and a table at the end.

python -m tests.chaos --seeds 200 --first 1     all of them
python -m tests.chaos --seed 17                 one again
"""

import argparse
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

from kubenexus.testing.controlplane import ControlPlane
from tests.chaos.faults import FAULTS
from tests.chaos.scenario import THEMES, scenario
from tests.chaos.seed_run import Report, play
from tests.e2e.controlplane import build

LAWS = (
    "overbooked",
    "lost",
    "moved",
    "halved",
    "unprovoked",
    "evicted twice",
    "ledger",
    "no lease",
    "not leading",
    "replay",
    "play",
)


def main() -> int:
    said = _arguments()
    assets = build.assets()
    if lacking := build.missing(assets):
        print(f"no control plane: {assets} lacks {', '.join(lacking)}; run `make controlplane` first", file=sys.stderr)
        return 1
    seeds = [said.seed] if said.seed is not None else list(range(said.first, said.first + said.seeds))
    seeds = [seed for seed in seeds if said.theme in ("", scenario(seed).theme)]
    folder = Path(tempfile.mkdtemp(prefix="kubenexus-chaos-"))
    with ControlPlane(assets, folder) as plane:
        reports = [_played(plane, seed) for seed in seeds]
    print(_table(reports))
    bad = [report for report in reports if report.breaches]
    for report in bad:
        print(f"\nseed {report.seed} failed; replay it with: python -m tests.chaos --seed {report.seed}")
        print("\n".join(f"  {text}" for text in report.breaches[:20]))
    if bad or said.keep:
        print(f"\nlogs: {folder}")
    else:
        shutil.rmtree(folder)
    return 1 if bad else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description="Faults through a real socket.")
    parser.add_argument("--seeds", type=int, default=220, help="how many [220]")
    parser.add_argument("--first", type=int, default=1, help="the first of them [1]")
    parser.add_argument("--seed", type=int, help="this one alone")
    parser.add_argument("--theme", choices=[*THEMES], default="", help="only those of this theme")
    parser.add_argument("--keep", action="store_true", help="keep the logs even if all is well")
    return parser.parse_args()


def _played(plane: ControlPlane, seed: int) -> Report:
    report = play(plane, scenario(seed))
    verdict = "ok" if not report.breaches else f"FAILED: {report.breaches[0]}"
    faults = report.faults.total()
    print(
        f"seed {seed:<4} {report.theme:<8} {report.seconds:5.1f} s  {report.pods:5} pods  {report.bound:4} bound  "
        f"{faults:4} faults  {report.starts} starts  converged in {report.converged:4.1f} s  {verdict}",
        flush=True,
    )
    for race in report.races:
        print(f"          race, nobody could know: {race}", flush=True)
    return report


def _table(reports: list[Report]) -> str:
    faults = sum((report.faults for report in reports), Counter[str]())
    broken = Counter(text.partition(":")[0] for report in reports for text in report.breaches)
    seconds = sorted(report.seconds for report in reports)
    rows = [
        ("seeds", len(reports)),
        *((f"  {theme}", sum(report.theme == theme for report in reports)) for theme in THEMES),
        ("kills in a burst of 1,000 pods", sum(report.kills for report in reports if report.theme == "burst")),
        ("minutes", round(sum(seconds) / 60, 1)),
        ("seconds a seed, median / longest", f"{seconds[len(seconds) // 2]:.1f} / {seconds[-1]:.1f}"),
        ("pods sent", sum(report.pods for report in reports)),
        ("scheduler starts", sum(report.starts for report in reports)),
        ("faults", faults.total()),
        *((f"  {kind}", faults[kind]) for kind in (*FAULTS, *sorted(faults.keys() - FAULTS.keys()))),
        ("decisions recorded and repeated", sum(report.decisions for report in reports)),
        ("slowest convergence, s", round(max(report.converged for report in reports), 1)),
        ("latest write after a renewal, s", round(max(report.latest for report in reports), 1)),
        ("races that nobody could avoid", sum(len(report.races) for report in reports)),
        ("gaps in the checker's own watches", sum(report.gaps for report in reports)),
        *((law, broken[law]) for law in LAWS),
        ("seeds failed", sum(bool(report.breaches) for report in reports)),
    ]
    return "\n".join(["", *(f"{name:<36} {value}" for name, value in rows)])


if __name__ == "__main__":
    sys.exit(main())
