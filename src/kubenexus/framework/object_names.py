"""Marks in messages that stand for objects of a pod, so that pods of one class share a message without its names.

A claim that was made from a template has a name of its own for each pod. A plugin that computes for a class writes a
mark instead. It is replaced where a message is made for one pod, by the names of that pod's objects.
"""

import re
from typing import Final

from kubenexus.api.core import Pod
from kubenexus.api.devices.pod_claims import claim_name
from kubenexus.base.errors import truncated
from kubenexus.framework.verdict import Reason

EXTENDED_RESOURCES: Final = "<extended-resources>"  # kube-scheduler's name for the claim before it exists
_MARK: Final = re.compile("\x01(-?[0-9]+)\x01")


def claim_mark(position: int) -> str:
    """Returns the mark for the claim at a position in the pod; -1: the claim for its extended resources."""
    return f"\x01{position}\x01"


def with_names(text: str, pod: Pod) -> str:
    """Returns a message with the names of the pod's objects instead of marks."""
    return _MARK.sub(lambda found: _key(pod, int(found[1])), text) if "\x01" in text else text


def named_reasons(reasons: tuple[Reason, ...], pod: Pod) -> tuple[Reason, ...]:
    """Returns reasons for one pod."""
    if not any("\x01" in each.text for each in reasons):
        return reasons
    return tuple(Reason(with_names(each.text, pod), each.code) for each in reasons)


def _key(pod: Pod, position: int) -> str:
    claims = pod.spec.resource_claims
    name = claim_name(pod, claims[position]) if 0 <= position < len(claims) else EXTENDED_RESOURCES
    return f"{pod.metadata.namespace}/{truncated(name or '')}"
