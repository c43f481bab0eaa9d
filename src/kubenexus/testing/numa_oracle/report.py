"""What a comparison with recorded verdicts prints."""

from collections.abc import Iterator

from kubenexus.testing.numa_oracle.compare import Group, VerdictCounts

AGREEMENT = 0.98  # from what a scheduler sees, over all nodes
AGREEMENT_STATIC = 0.99  # where CPU Manager and Memory Manager are static
FALSE_REJECTS = 0.003
ENOUGH = 1000  # verdicts where both are static; a sample is chosen for what is rare, and its shares say little
STATIC = "CPU Manager static, Memory Manager Static"


def passed(tally: VerdictCounts) -> bool:
    """Returns whether everything is equal from the state, and enough from what a scheduler sees."""
    seen, static = tally.from_nrt.get("all", Group()), tally.from_nrt.get(STATIC, Group())
    return (
        not tally.differences
        and seen.verdicts > 0
        and seen.agreement >= AGREEMENT
        and seen.false_rejects <= FALSE_REJECTS * seen.verdicts
        and (static.verdicts < ENOUGH or static.agreement >= AGREEMENT_STATIC)
    )


def report(tally: VerdictCounts, most: int = 10) -> Iterator[str]:
    """Yields the lines: differences from the state, tables of the predictions from NodeResourceTopology, the sums."""
    for line in tally.differences[:most]:
        yield f"different: {line}"
    if len(tally.differences) > most:
        yield f"... and {len(tally.differences) - most} more"
    yield "from NodeResourceTopology, Node and pods, and (in brackets) from totals only:"
    yield f"{'':44} {'verdicts':>8} {'admitted':>8} {'false accepts':>14} {'false rejects':>14} {'agreement':>18}"
    for name in sorted(tally.from_nrt, key=lambda name: (name != "all", name)):
        seen, totals = tally.from_nrt[name], tally.by_totals[name]
        yield (
            f"{name:44} {seen.verdicts:8,} {seen.admitted:8,} {_both(seen.false_accepts, totals.false_accepts)} "
            f"{_both(seen.false_rejects, totals.false_rejects)} {seen.agreement:9.2%} ({totals.agreement:.1%})"
        )
    for reason, number in tally.reasons.most_common():
        yield f"  wrong {number} times: {reason}"
    placed, seen = tally.affinities, tally.from_nrt.get("all", Group())
    yield f"admitted as predicted: NUMA nodes right for {placed.verdicts - placed.different:,} of {placed.verdicts:,}"
    held = f"held {seen.verdicts:,}, compared {seen.verdicts:,}, different {seen.different:,}"
    yield f"from what a scheduler sees: {held}"
    yield f"from the state: held {tally.held:,}, compared {tally.compared:,}, different {len(tally.differences):,}"


def _both(ours: int, totals: int) -> str:
    return f"{ours:,} ({totals:,})".rjust(14)
