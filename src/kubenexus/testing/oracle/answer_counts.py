"""Counts the answers in a file from its plain JSON alone.

It shares no code with the comparison: the comparison's own count is checked against it, so that a skipped answer shows
up as a number.
"""

from collections import Counter
from typing import Any

from kubenexus.testing.oracle.comparison_counts import Key
from kubenexus.testing.oracle.upstream import FILTERS, SCORES


def in_case(kind: str, nodes: int, expected: dict[str, Any]) -> Counter[Key]:
    """Counts all answers about all incoming pods of one case; the case itself counts as one."""
    held = Counter({Key(kind, "case"): 1})
    for pod in expected["pods"].values():
        held.update(in_pod(kind, nodes, pod))
    return held


def in_pod(kind: str, nodes: int, pod: dict[str, Any]) -> Counter[Key]:
    """Counts all answers about one incoming pod on so many nodes, including those expressed by absence."""
    held: Counter[Key] = Counter()
    for aspect in ("requests", "nonZeroRequests", "preFilterFail", "preFilterNodes", "error"):
        held[Key(kind, aspect)] = 1
    held[Key(kind, "feasible")] = nodes
    for plugin in FILTERS:
        held[Key(kind, "skipFilter", plugin)] = held[Key(kind, "preFilter", plugin)] = 1
        held[Key(kind, "filter", plugin)] = nodes
    for reject in pod.get("rejects", {}).values():
        held[Key(kind, "first", reject["first"][0])] += 1
    held[Key(kind, "fitError")] = int("fitError" in pod)
    _count_preemption(held, kind, pod.get("preemption"))
    held[Key(kind, "devices")] = sum(map(len, pod.get("devices", {}).values()))
    _count_scores(held, kind, pod)
    return +held


def _count_preemption(held: Counter[Key], kind: str, dry_run: dict[str, Any] | None) -> None:
    """Counts the answers of a dry run: who is tried, what came out on each node, and which node is chosen."""
    if dry_run is not None:
        held[Key(kind, "preemption")] = 1
        held[Key(kind, "preemptionNode")] = len(dry_run.get("candidates", ())) + len(dry_run.get("notCandidates", ()))
        held[Key(kind, "preemptionBest")] = int("best" in dry_run)


def _count_scores(held: Counter[Key], kind: str, pod: dict[str, Any]) -> None:
    held[Key(kind, "scoreError")] = int(bool(pod["feasible"]))
    held[Key(kind, "total")] = len(pod.get("total", ()))
    held[Key(kind, "best")] = held[Key(kind, "choice")] = int("best" in pod)
    for plugin, scores in pod.get("scores", {}).items():
        held[Key(kind, "raw", plugin)] = len(scores["raw"])
        held[Key(kind, "norm", plugin)] = len(scores["norm"])
    if "scores" in pod:
        held.update(Key(kind, "skipScore", plugin) for plugin in SCORES)


def in_vector(kind: str, vector: dict[str, Any]) -> Counter[Key]:
    """Counts the fields of a vector besides its input; a list counts once for each element."""
    held = Counter({Key(kind, "case"): 1})
    match kind.removeprefix("vectors-"):
        case "quantities":
            aspects = {"error"} | (vector.keys() & {"canonical", "value", "milli", "sign"})
        case "requests":
            aspects = vector.keys() - {"pod"}
        case "selectors":
            aspects = {"error"} if "error" in vector else {"error", "string"}
        case _:
            aspects = set()
    held.update(Key(kind, aspect) for aspect in aspects)
    held[Key(kind, "match")] += len(vector.get("match", ()))
    return +held
