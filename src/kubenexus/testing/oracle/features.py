"""The features of a recorded case: the verdicts it contains and the fields its objects use.

A sample with every feature of a file exercises every rule that the file exercises, if less often.
"""

import itertools
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

Feature: TypeAlias = tuple[str, ...]

# Below these the keys are the cluster's own data, not fields of the API.
_DATA = frozenset({"annotations", "disruptedPods", "labels", "matchLabels", "nodeSelector", "volumeAttributes"})
# Fields whose values select a rule. All other texts are names, amounts and times.
_CHOICES = frozenset(
    {
        "accessModes",
        "allocationMode",
        "effect",
        "match",
        "nodeAffinityPolicy",
        "nodeTaintsPolicy",
        "operator",
        "overflow",
        "phase",
        "preemptionPolicy",
        "protocol",
        "restartPolicy",
        "sign",
        "topologyKey",
        "volumeBindingMode",
        "volumeMode",
        "whenUnsatisfiable",
    }
)
_NAMES: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r'("[A-Z]\w*")|"[^"]*"'), lambda found: found[1] or '"X"'),  # plugins begin with a capital, and stay
    (re.compile(r"\b(claim|PVC|pod|device|pool) [\w.-]+/[\w./-]+"), r"\1 X"),
    (re.compile(r"\brequest \w+"), "request X"),
    (re.compile(r"\[\d+\]"), "[N]"),
)


class Verdict(NamedTuple):
    """A refusal of a plugin, without the names of objects. `point`: Filter, PreFilter or PreScore."""

    point: str
    plugin: str
    code: str
    reason: str


def without_names(text: str) -> str:
    """Replaces every name of an object in a refusal, so that equal refusals are equal texts."""
    for pattern, instead in _NAMES:
        text = pattern.sub(instead, text)
    return text


def verdicts(expected: dict[str, Any]) -> Iterator[Verdict]:
    """Yields every recorded refusal of the incoming pods of a case, with repetitions."""
    for pod in expected["pods"].values():
        for reject in pod.get("rejects", {}).values():
            for plugin, (code, *reasons) in reject.get("all", {}).items():
                yield from (Verdict("Filter", plugin, code, without_names(reason)) for reason in reasons)
        for plugin, said in pod.get("preFilter", {}).items():
            code, *reasons = said.get("status", [""])
            yield from (Verdict("PreFilter", plugin, code, without_names(reason)) for reason in reasons)
        if error := pod.get("scoreError"):
            running, _, reason = without_names(error).partition('": ')
            yield Verdict("PreScore", running.rpartition('"')[2], "Error", reason)


def of_case(item: dict[str, Any]) -> set[Feature]:
    """Returns the features of an element of a file of cases."""
    case, expected = item["case"], item["expected"]
    found: set[Feature] = set(verdicts(expected))
    for name, objects in case["objects"].items():
        found.update(_fields(objects, (name,)))
    found.update(_fields(case["incoming"], ("incoming",)))
    for pod in expected["pods"].values():
        found.update(_answers(pod))
    return found


def of_vector(vector: dict[str, Any]) -> set[Feature]:
    """Returns the features of a small vector: its fields, the form of its number, the text of its error."""
    found = set(_fields(vector, ()))
    if isinstance(text := vector.get("in"), str):
        found.add(("in", re.sub(r"\d+", "9", text), str("error" in vector), str("overflow" in vector)))
    if isinstance(message := vector.get("message"), str):
        found.add(("message", without_names(message)))
    return found


def _fields(value: Any, path: Feature) -> Iterator[Feature]:
    """Yields the paths of all set fields, with the value where it selects a rule."""
    if isinstance(value, dict):
        yield path
        if path and path[-1] in _DATA:
            return
        for key, inner in value.items():
            yield from _fields(inner, (*path, key))
    elif isinstance(value, list):
        for inner in value:
            yield from _fields(inner, path)
    else:
        chooses = isinstance(value, bool) or (path and path[-1] in _CHOICES)
        yield (*path, str(value)) if chooses else path


def _answers(pod: dict[str, Any]) -> Iterator[Feature]:
    """Yields features of one pod's answer besides single refusals: combinations, scores, how the attempt ends."""
    yield from (("answer", key) for key in pod)
    yield "feasible", str(min(len(pod["feasible"]), 2))
    yield from (("skipFilter", plugin) for plugin in pod.get("skipFilter", ()))
    yield from (("skipScore", plugin) for plugin in pod.get("skipScore", ()))
    for plugin, scores in pod.get("scores", {}).items():
        yield "scores", plugin, str(len(set(scores["raw"])) > 1), str(len(set(scores["norm"])) > 1)
    for plugin, said in pod.get("preFilter", {}).items():
        yield "preFilter", plugin, *said
    for reject in pod.get("rejects", {}).values():
        yield "first", *map(without_names, reject["first"])
        yield "nominated pods alone refuse", str("all" not in reject)
        yield from (("both", *pair) for pair in itertools.combinations(sorted(reject.get("all", {})), 2))
    if failed := pod.get("preFilterFail"):
        yield "preFilterFail", *map(without_names, failed)
    if error := pod.get("error"):
        yield "error", without_names(error)
    yield from _preemption(pod.get("preemption") or {})


def _preemption(said: dict[str, Any]) -> Iterator[Feature]:
    if not said:
        return
    yield "preemption", str(said.get("eligible")), without_names(str(said.get("why", "")))
    yield "preemption", "best", str(min(len(said.get("best") or ()), 2))
    for candidate in (said.get("candidates") or {}).values():
        violates = bool(candidate.get("pdbViolations"))
        yield "preemption", "victims", str(min(len(candidate.get("pods") or ()), 3)), str(violates)
    for status in (said.get("notCandidates") or {}).values():
        yield "preemption", "notCandidates", *map(without_names, status)
