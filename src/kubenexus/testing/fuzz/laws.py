"""What must hold, whatever is thrown. Each law returns what is wrong, or an empty text."""

import json
import re
from collections.abc import Iterable, Iterator
from random import Random
from typing import Any, Final

import msgspec

from kubenexus.api.codec import Unreadable
from kubenexus.api.core import Node, Pod, Taint
from kubenexus.api.node_selectors import exactly, matches, required
from kubenexus.api.tolerations import tolerated, untolerated
from kubenexus.base.errors import Malformed, shown
from kubenexus.base.numbers import LIMIT
from kubenexus.framework.decision import Decision, Placement
from kubenexus.framework.verdict import Code
from kubenexus.state.digest import digest, row_digest
from kubenexus.state.ledger import Ledger
from kubenexus.testing.fuzz.twin import Twin, offered, wanted

LONGEST: Final = 4096  # no message may be longer: it has to fit into an event with room to spare
_BEGINNING: Final = 100  # of a name: what a message must show of it, however long it is
_PATH: Final = re.compile(r"[a-z][A-Za-z]*")
_GUESSED: Final = re.compile("[\ud800-\udfff\ufffd\0]")
STOPPED: Final = ("Succeeded", "Failed")
_CORDON: Final = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
_OWN_FAULT: Final = ("Invalid value: ", "Unsupported value: ", "invalid score")  # the pod's, in upstream's words


class Identity(msgspec.Struct, frozen=True):
    """What a reader without any types finds in the bytes: the least that a refusal must know, too."""

    namespace: str
    name: str
    node: str = ""
    phase: str = ""
    proper: bool = True


def identity(raw: bytes) -> Identity | None:
    """None when the bytes are no object even to a generous reader: then there is nothing to save. `proper` if they are
    JSON to the letter, so that a field can be blamed."""
    strange: list[str] = []
    text = raw.decode("utf-8", "replace")
    try:
        data = json.loads(text, strict=False, parse_int=_number, parse_float=_number, parse_constant=strange.append)
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict):
        return None
    paths = (("metadata", "namespace"), ("metadata", "name"), ("spec", "nodeName"), ("status", "phase"))
    proper = not strange and "\\ud" not in text and "\ufffd" not in text and "\0" not in text
    return Identity(*(_text(data, *path) for path in paths), proper)


def refusal(kind: str, error: Malformed, known: Identity | None) -> str:
    """A refusal names the object and the field, as far as anybody could, and stays short."""
    said = str(error)
    if len(said) > LONGEST:
        return f"the message has {len(said):,} characters"
    if not error.subject.startswith(kind) or not error.problem:
        return f"does not say what is wrong with what: {said}"
    if known is None:
        return ""
    if known.name[:_BEGINNING] not in error.subject:
        return f"the name could be read, but is not in the message: {said}"
    if kind == "Pod" and known.namespace[:_BEGINNING] not in error.subject:
        return f"the namespace could be read, but is not in the message: {said}"
    return "" if not known.proper or _PATH.match(error.field) else f"no field is named: {said}"


def saved(found: Unreadable, known: Identity | None) -> str:
    """Where an unreadable pod runs must be known whenever it can be, or its node is not fenced."""
    if known is None or not known.node or known.phase in STOPPED or found.node == known.node:
        return ""
    return f"it is not known where it runs: on {shown(known.node)!r}, but was read as on {shown(found.node)!r}"


def decision(answer: object, pods: Iterable[Pod]) -> str:
    """`decide` always answers, with a sentence, and errors are the pod's own fault or nobody's."""
    if not isinstance(answer, Decision):
        return f"no Decision but {answer!r}"
    said = answer.sentence()
    if not said or len(said) > LONGEST * 8:
        return f"a sentence of {len(said):,} characters"
    if answer.code is Code.ERROR and not any(fault in answer.error for fault in _OWN_FAULT):
        return f"failed: {answer.error[:300]}"
    message = answer.diagnosis.message
    if message.startswith("Pod ") and not any(
        pod.key[:_BEGINNING] in message and _PATH.match(message.partition(": ")[2]) for pod in pods
    ):
        return f"does not name the pod and the field: {message[:300]}"
    return ""


def placement(placed: Placement, pod: Pod, twin: Twin) -> str:
    """Nothing is put where it cannot run, is not wanted or does not fit. Counted exactly, before it is committed."""
    node = twin.nodes.get(placed.node)
    if node is None:
        return f"put on {shown(placed.node)!r}, which does not exist"
    if node.metadata.name in twin.fenced.values():
        return f"put on {shown(placed.node)}, which runs a pod that cannot be read"
    return _unwanted(pod, node) or _too_large(pod, node, twin)


def _unwanted(pod: Pod, node: Node) -> str:
    name, labels, spec = node.metadata.name, node.metadata.labels, pod.spec
    if node.spec.unschedulable and not tolerated(spec.tolerations, _CORDON):
        return f"put on {name}, which is cordoned"
    # Ten thousand taints against as many tolerations are a matter for `work`.
    if len(node.spec.taints) < 100 and untolerated(spec.tolerations, node.spec.taints):
        return f"put on {name} against its taints"
    affinity = spec.affinity.node_affinity if spec.affinity else None
    if not matches(exactly(spec.node_selector), name, labels):
        return f"put on {name} against its nodeSelector"
    if affinity and affinity.required and not required(affinity.required).matches(name, labels):
        return f"put on {name} against its node affinity"
    return ""


def _too_large(pod: Pod, node: Node, twin: Twin) -> str:
    has, taken = offered(node), twin.used(node.metadata.name)
    for name, amount in {**wanted(pod, status=False), "pods": 1}.items():
        if name in twin.delegated and not has.get(name):
            continue
        if taken.get(name, 0) + amount > has.get(name, 0):
            return f"{shown(name)} on {node.metadata.name}: {taken.get(name, 0)} + {amount} of {has.get(name, 0)}"
    return ""


def books(ledger: Ledger, twin: Twin) -> Iterator[str]:
    """Every node, amount and fence is what the twin says, counted anew with exact integers."""
    if ledger.nodes.row_of.keys() != twin.nodes.keys():
        yield f"other nodes: {sorted(map(shown, ledger.nodes.row_of.keys() ^ twin.nodes.keys()))[:5]}"
        return
    fences = {node: sorted(key for key, at in twin.fenced.items() if at == node) for node in twin.fenced.values()}
    if ledger.fences != fences:
        yield "other nodes are fenced than should be"
    resources = ledger.nodes.resources
    for name, node in twin.nodes.items():
        row, has, taken = ledger.nodes.row_of[name], offered(node), twin.used(name)
        for resource, r in resources.index.items():
            for array, exact in ((resources.alloc, has), (resources.used, taken)):
                if array.item(r, row) != min(exact.get(resource, 0), LIMIT):
                    yield f"{shown(name)}, {shown(resource)}: {array.item(r, row)}, not {exact.get(resource, 0)}"


def rebuilt(twin: Twin, rng: Random) -> Ledger:
    """A ledger that was told nothing but what was accepted, in another order."""
    ledger = Ledger()
    nodes, placed = _shuffled(twin.nodes.values(), rng), _shuffled(twin.placed.values(), rng)
    absent = {held.node for held in placed if held.ours} - twin.nodes.keys()
    for node in [*nodes, *(msgspec.structs.replace(Node(), metadata=_named(name)) for name in sorted(absent))]:
        ledger.node_seen(node)
    for held in placed:
        ledger.assume(held.pod, held.node, 0.0) if held.ours else ledger.pod_seen(held.pod)
    for pod in _shuffled(twin.nominated.values(), rng):
        ledger.pod_seen(pod)
    for name in absent:
        ledger.node_gone(name)
    for key, node_name in twin.fenced.items():
        ledger.pod_unreadable(key, node_name)
    for device_class in _shuffled(twin.classes.values(), rng):
        ledger.device_class_seen(device_class)
    return ledger


def digests(live: Ledger, again: Ledger) -> str:
    """Both come to the same; if not, where they part."""
    if digest(live) == digest(again):
        return ""
    for name, row in live.nodes.row_of.items():
        if row_digest(live.nodes, row) != row_digest(again.nodes, again.nodes.row_of[name]):
            return f"the row of {shown(name)}"
    for key, record in live.pods.items():
        other = again.pods.get(key)
        if other is None or (record.uid, record.node, record.footprint) != (other.uid, other.node, other.footprint):
            return f"a pod counts otherwise: {shown(str(record))}, {shown(str(other))}"
    return "other pods, nominations, fences or delegated resources"


def _shuffled(values: Iterable[Any], rng: Random) -> list[Any]:
    found = list(values)
    rng.shuffle(found)
    return found


def _named(name: str) -> Any:
    return msgspec.structs.replace(Node().metadata, name=name)


def _number(text: str) -> int:
    return 0


def _text(data: Any, *path: str) -> str:
    """A text at the end of a path; none if there is none, or if it has characters that only a guess can read."""
    for step in path:
        data = data.get(step) if isinstance(data, dict) else None
    return data if isinstance(data, str) and not _GUESSED.search(data) else ""
