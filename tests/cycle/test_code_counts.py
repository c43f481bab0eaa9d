"""Coded scores as plain numbers: what is counted and told of them is what all rows would say."""

import random
from collections import Counter

import numpy as np
import pytest

from kubenexus.cycle.scores import code_counts
from kubenexus.cycle.scores.code_counts import CodeCounts
from kubenexus.framework.pod_class import PodClass
from kubenexus.plugins.inter_pod_affinity.plugin import InterPodAffinity
from kubenexus.plugins.pod_topology_spread.plugin import PodTopologySpread
from kubenexus.plugins.pod_topology_spread.scoring import IGNORED
from kubenexus.plugins.row_codes import RowCodes
from kubenexus.state.view import Nodes
from kubenexus.testing.builders import a_node, a_pod
from kubenexus.testing.harness import a_ledger

ROWS, CODES = 12, 8
VALUES = np.arange(CODES)
VIEW = Nodes(a_ledger([a_node(f"n{row}") for row in range(ROWS)]).nodes)


def a_class(signature: bytes) -> PodClass:
    return PodClass(signature, a_pod())


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("most", [CODES, 3, -1])
def test_rows_are_counted_by_code_as_they_move(seed: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two classes hold the same codes, and are asked about in any order; rows become feasible and cease to be."""
    monkeypatch.setattr(code_counts, "_MAX_CODES", most)
    rng = random.Random(seed)
    codes = RowCodes(np.array([rng.randrange(CODES) for _ in range(ROWS)]), CODES)
    classes, counts = [a_class(b"1"), a_class(b"2")], [CodeCounts(), CodeCounts()]
    ok, version = np.array([rng.random() < 0.8 for _ in range(ROWS)]), 0
    for _ in range(40):
        if rng.random() < 0.2:
            ok[rng.randrange(ROWS)] ^= True
            version += 1
        which = rng.randrange(2)
        if rng.random() < 0.7:
            steps = [(rng.randrange(ROWS), rng.choice([-1, 1, 2])) for _ in range(rng.randint(1, 3))]
            codes.move(steps, classes[which])
        coded = codes.as_scores(VALUES, VIEW, classes[which])
        wanted = Counter(coded.codes[ok].tolist())
        few = counts[which].few(coded, ok, version)
        assert few == (wanted if len(wanted) <= most else None)
        assert np.flatnonzero(counts[which].present(coded, ok, version)).tolist() == sorted(wanted)


def test_sums_hold_where_only_the_rows_that_are_named_are_summed_again() -> None:
    """A row moves at a time, or several, or one twice; what codes are worth changes for some, for many, or for none."""
    rng, seen = random.Random(7), Counter[str]()
    codes, asker, counted = RowCodes(np.array([0] * (ROWS - 2) + [3, 5]), CODES), a_class(b"1"), CodeCounts()
    ok, worth, key, known = np.arange(ROWS) != 1, [0] * CODES, None, dict[int, int]()
    sums = dict[int, int]()
    for _ in range(400):
        if rng.random() < 0.8:
            row = rng.choice([0, 1, ROWS - 1, ROWS - 2])
            codes.move([(row, rng.choice([-1, 1, 2])) for _ in range(rng.choice([1, 1, 2]))], asker)
        for code in rng.sample(range(CODES), rng.choice([0, 1, 1])):
            worth[code] += rng.choice([0, 1])
        coded = codes.as_scores(VALUES, VIEW, asker)
        few = counted.few(coded, ok, 0)
        assert few is not None
        rows = counted.changed(coded, ok, key, [code for code in few if known.get(code) != worth[code]])
        seen["all" if rows is None else "some" if rows else "none"] += 1
        wanted = {row: worth[coded.codes[row]] for row in range(ROWS) if ok[row]}
        sums |= wanted if rows is None else {row: wanted[row] for row in rows}
        assert sums == wanted
        key, known = coded.key, {code: worth[code] for code in few}
    assert min(seen["all"], seen["some"], seen["none"]) > 20


@pytest.mark.parametrize("rule", [InterPodAffinity({}), PodTopologySpread({})], ids=lambda rule: rule.name)
@pytest.mark.parametrize("seed", range(30))
def test_few_scores_are_normalised_as_columns_are(rule: InterPodAffinity | PodTopologySpread, seed: int) -> None:
    rng, normalize = random.Random(seed), rule.normalize
    least, most = rng.choice([(0, 0), (0, 7), (-50, 50), (0, 10_000), (3, 3)])
    if rule.name == "PodTopologySpread":
        least = max(least, 0)
    raw = [rng.randint(least, most) for _ in range(rng.randint(0, 12))]
    if rule.name == "PodTopologySpread":
        raw += [IGNORED] * rng.randint(0, 2)
    assert normalize.apply_few is not None
    assert normalize.extremes is not None
    assert normalize.apply is not None
    column = np.array(raw, np.int64)
    extremes = normalize.extremes(column)
    assert normalize.apply_few(raw) == (extremes, normalize.apply(column, extremes).tolist())
