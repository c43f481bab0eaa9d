"""Events: one collection with two formats, that of core v1 (stored) and that of events.k8s.io/v1."""

from kubenexus.sim.apiserver.rules.base import Rule
from kubenexus.sim.apiserver.status_errors import FieldError, Json, invalid, required

# events.k8s.io -> core
_RENAMED = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
_BACK = {core: new for new, core in _RENAMED.items()}
# In Go these are structs, which are never left out: a time that is not set is null. kubectl sorts by such a field only
# if some event has it.
_TIMES = ("eventTime", "firstTimestamp", "lastTimestamp")


def inward(event: Json) -> Json:
    """Converts an event to the stored format."""
    return {_RENAMED.get(key, key): value for key, value in event.items()}


def outward(event: Json) -> Json:
    """Converts a stored event to events.k8s.io."""
    return {_BACK.get(key, key): value for key, value in event.items()}


def _default(event: Json) -> None:
    event.setdefault("source", {})
    event.setdefault("reportingComponent", "")
    event.setdefault("reportingInstance", "")
    for key in _TIMES:
        event.setdefault(key, None)


def _check(event: Json) -> list[FieldError]:
    where = event.get("involvedObject", {}).get("namespace", "")
    own = event["metadata"].get("namespace", "")
    if (where or "default") != own:
        return [invalid("involvedObject.namespace", where, "does not match event.namespace")]
    if not event.get("eventTime"):
        return []
    return _check_new(event)


def _check_new(event: Json) -> list[FieldError]:
    """Checks the fields that are required if `eventTime` is set, as in events.k8s.io/v1."""
    needed = {"reportingComponent": "reportingController", "reportingInstance": "reportingInstance"}
    needed |= {"action": "action", "reason": "reason"}
    flaws = [required(shown) for key, shown in needed.items() if not event.get(key)]
    if event.get("type") not in {"Normal", "Warning"}:
        flaws.append(invalid("type", event.get("type", ""), ""))
    return flaws


EVENT = Rule(default=_default, check=_check, create_on_update=True)
