"""Pods with an owner, for the tests of classification."""

from typing import Any

import msgspec

from kubenexus.api.core import Pod
from kubenexus.api.meta import OwnerReference
from kubenexus.testing.builders import a_pod


def an_owned_pod(kind: str, api_version: str, **pod: Any) -> Pod:
    """Returns a pod whose controller is of this kind; `pod` as for `a_pod`."""
    owner = OwnerReference(kind=kind, name="owner", uid="u-1", api_version=api_version, controller=True)
    return with_owners(a_pod(**pod), [owner])


def with_owners(pod: Pod, owners: list[OwnerReference]) -> Pod:
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, owner_references=owners))
