"""Events about workloads, as `kubectl describe` shows them."""

import msgspec

from kubenexus.base.timestamps import format_micro_time
from kubenexus.client import verbs
from kubenexus.client.calls import Call
from kubenexus.client.kinds import ApiResource
from kubenexus.sim.apiserver.http_types import Response
from kubenexus.sim.controllers.reconcile_result import WorkloadEvent
from kubenexus.sim.controllers.types import Item


def about(call: Call, answer: Response) -> list[WorkloadEvent]:
    """Returns the events for a call that created or deleted a pod."""
    path = call.path.partition("?")[0].split("/")
    if "pods" not in path or call.method not in {"POST", "DELETE"}:
        return []
    said = msgspec.json.decode(answer.body)
    if answer.code >= 300:
        text = f"Error {'creating' if call.method == 'POST' else 'deleting'}: {said['message']}"
        return [WorkloadEvent("FailedCreate" if call.method == "POST" else "FailedDelete", text, "Warning")]
    if call.method == "POST":
        return [WorkloadEvent("SuccessfulCreate", f"Created pod: {said['metadata']['name']}")]
    return [WorkloadEvent("SuccessfulDelete", f"Deleted pod: {path[-1]}")]


def event(kind: ApiResource, item: Item, note: WorkloadEvent, now: float) -> Call:
    meta = item["metadata"]
    regarding = {"apiVersion": kind.api_version, "kind": kind.kind, "name": meta["name"], "uid": meta["uid"]}
    body = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"generateName": f"{meta['name']}.", "namespace": meta["namespace"]},
        "eventTime": format_micro_time(now),
        "reportingController": f"{kind.kind.lower()}-controller",
        "reportingInstance": "kubenexus",
        "action": note.reason,
        "reason": note.reason,
        "regarding": {**regarding, "namespace": meta["namespace"], "resourceVersion": meta["resourceVersion"]},
        "note": note.text[:1024],
        "type": note.type,
    }
    return verbs.create_event(meta["namespace"], body)
