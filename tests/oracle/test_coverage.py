"""What the sample in the repository holds: every plugin, every refusal and every kind that the full set holds."""

import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kubenexus.framework.verdict import Reason
from kubenexus.plugins import BUILT_IN
from kubenexus.testing.oracle.features import Verdict
from kubenexus.testing.oracle.files import VECTORS, find, items, kind_of
from kubenexus.testing.oracle.sample import OFTEN, read_index, reasons_of, size_of
from kubenexus.testing.oracle.upstream import FILTERS, SCORES

FOLDER = Path(__file__).parent / "data"
PAGE = Path(__file__).parents[2] / "docs" / "oracle.md"
INDEX = read_index(FOLDER)
MOST_BYTES = 6_000_000
NEVER_RECORDED = {
    # Only with `addedAffinity` in the plugin's arguments; recorded were the defaults.
    ("NodeAffinity", "node(s) didn't match scheduler-enforced node affinity"),
    # Only in words with the names of the resource or the claim.
    ("DynamicResources", "cannot fit resource"),
    ("DynamicResources", "cannot schedule extended resource claim"),
    # kube-scheduler looks at all devices of all nodes, however long that takes.
    (
        "DynamicResources",
        "the devices have not been looked at yet: selectors or constraints of the claims tell too many nodes apart",
    ),
    # kube-scheduler does not keep pods from nodes whose kubelet refused their like.
    ("NodeAffinity", "node(s) recently refused pods like this one"),
}


@cache
def elements() -> dict[str, list[dict[str, Any]]]:
    files, problems = find([FOLDER])
    assert not problems
    return {kind_of(file): [msgspec.json.decode(raw) for raw in items(file)] for file in files}


@cache
def pods() -> list[dict[str, Any]]:
    cases = [each for kind, found in elements().items() if not kind.startswith(VECTORS) for each in found]
    return [pod for each in cases for pod in each["expected"]["pods"].values()]


@cache
def refusing() -> set[str]:
    return {verdict.plugin for kind, found in elements().items() for verdict in reasons_of(kind, found)}


def test_it_is_small() -> None:
    assert sum(file.stat().st_size for file in FOLDER.iterdir()) <= MOST_BYTES


def test_the_index_counts_what_is_there() -> None:
    assert {kind: size_of(kind, found) for kind, found in elements().items()} == {
        kind: sizes.sample for kind, sizes in INDEX.kinds.items()
    }
    counted = sum((reasons_of(kind, found) for kind, found in elements().items()), Counter[Verdict]())
    assert counted == {Verdict(each.point, each.plugin, each.code, each.reason): each.sample for each in INDEX.reasons}


def test_every_refusal_of_the_full_set_is_in_it() -> None:
    """Six cases of each in each file, or all there are: so a rare one is there as often as in the full set."""
    assert INDEX.reasons
    assert [each for each in INDEX.reasons if each.sample < min(each.full, OFTEN)] == []


@pytest.mark.parametrize("plugin", FILTERS)
def test_every_filter_refuses_accepts_and_skips(plugin: str) -> None:
    always = {"NodeName", "NodeUnschedulable", "TaintToleration", "NodeResourcesFit"}  # these have no Skip
    assert plugin in refusing()
    assert any(pod["feasible"] and plugin not in pod.get("skipFilter", ()) for pod in pods())
    assert (plugin in always) != any(plugin in pod.get("skipFilter", ()) for pod in pods())


@pytest.mark.parametrize("plugin", SCORES)
def test_every_scorer_tells_nodes_apart(plugin: str) -> None:
    scored = [pod["scores"][plugin] for pod in pods() if plugin in pod.get("scores", {})]
    assert any(len(set(scores["norm"])) > 1 for scores in scored)


def test_every_reason_of_our_plugins_is_in_it() -> None:
    ours = {
        (name, reason.text)
        for name in {*FILTERS, *SCORES} & BUILT_IN.keys()
        for reason in vars(BUILT_IN[name]).values()
        if isinstance(reason, Reason)
    }
    assert ours
    recorded = {(each.plugin, each.reason) for each in INDEX.reasons if each.sample}
    assert ours - recorded == NEVER_RECORDED


def test_every_code_and_every_answer_is_in_it() -> None:
    codes = {verdict.code for kind in elements() for verdict in reasons_of(kind, elements()[kind])}
    assert codes == {each.code for each in INDEX.reasons}
    assert {key for pod in pods() for key in pod} >= {
        "requests", "nonZeroRequests", "skipFilter", "preFilter", "preFilterFail", "preFilterNodes", "rejects",
        "feasible", "scores", "skipScore", "total", "best", "scoreError", "error", "fitError", "devices", "preemption",
    }  # fmt: skip


def test_the_page_says_how_much_there_is() -> None:
    text = PAGE.read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z-]+)` \| [^|]+ \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \|$", text, re.M)
    said = {kind: tuple(int(cell.replace(",", "")) for cell in cells) for kind, *cells in rows}
    assert said == {
        kind: (sizes.full.cases, sizes.full.answers, sizes.sample.cases, sizes.sample.answers)
        for kind, sizes in INDEX.kinds.items()
    }
