"""Events about workloads, as `kubectl describe` shows them."""

import msgspec

from kubenexus.base.moments import micros_text
from kubenexus.client import verbs
from kubenexus.client.calls import Call
from kubenexus.client.kinds import Resource
from kubenexus.sim.apiserver.answers import Answer
from kubenexus.sim.controllers.seen import Item
from kubenexus.sim.controllers.steps import Note


def about(call: Call, answer: Answer) -> list[Note]:
    """What a call that made or deleted a pod is told as."""
    path = call.path.partition("?")[0].split("/")
    if "pods" not in path or call.method not in {"POST", "DELETE"}:
        return []
    said = msgspec.json.decode(answer.body)
    if answer.code >= 300:
        text = f"Error {'creating' if call.method == 'POST' else 'deleting'}: {said['message']}"
        return [Note("FailedCreate" if call.method == "POST" else "FailedDelete", text, "Warning")]
    if call.method == "POST":
        return [Note("SuccessfulCreate", f"Created pod: {said['metadata']['name']}")]
    return [Note("SuccessfulDelete", f"Deleted pod: {path[-1]}")]


def event(kind: Resource, item: Item, note: Note, now: float) -> Call:
    meta = item["metadata"]
    regarding = {"apiVersion": kind.api_version, "kind": kind.kind, "name": meta["name"], "uid": meta["uid"]}
    body = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"generateName": f"{meta['name']}.", "namespace": meta["namespace"]},
        "eventTime": micros_text(now),
        "reportingController": f"{kind.kind.lower()}-controller",
        "reportingInstance": "kubenexus",
        "action": note.reason,
        "reason": note.reason,
        "regarding": {**regarding, "namespace": meta["namespace"], "resourceVersion": meta["resourceVersion"]},
        "note": note.text[:1024],
        "type": note.type,
    }
    return verbs.create_event(meta["namespace"], body)
