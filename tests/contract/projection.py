"""What two servers must agree on: an object without what each chooses for itself, and without what is empty."""

from typing import Any

# Identity, time, and who wrote what: never the same twice.
OWN = {"uid", "resourceVersion", "creationTimestamp", "managedFields", "deletionTimestamp", "continue", "selfLink"}
OWN |= {"lastTransitionTime", "lastProbeTime", "lastPhaseTransitionTime", "disruptedPods"}
EMPTY: tuple[Any, ...] = (None, "", [], {})


def projected(content: Any, namespace: str) -> Any:
    """A server writes null, nothing, or something empty for the same; the namespace of the run becomes `NS`."""
    if isinstance(content, dict):
        seen = {key: projected(value, namespace) for key, value in content.items() if key not in OWN}
        return {key: value for key, value in seen.items() if value not in EMPTY}
    if isinstance(content, list):
        return [projected(each, namespace) for each in content]
    return content.replace(namespace, "NS") if isinstance(content, str) else content
