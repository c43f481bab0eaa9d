"""Finds the path of a kind through the server's discovery."""

from collections.abc import Callable, Mapping
from typing import Any


class ResourceDiscovery:
    """The server's list of resources, requested once for each API version."""

    def __init__(self, get: Callable[[str], Any]) -> None:
        self._get = get
        self._known: dict[str, dict[str, tuple[str, bool]]] = {}

    def collection(self, item: Mapping[str, Any], namespace: str = "") -> str:
        """Returns the path of the object's collection; `namespace` is used if the object has none."""
        version, kind = item["apiVersion"], item["kind"]
        plural, namespaced = self._of(version)[kind]
        if not namespaced:
            return f"{_root(version)}/{plural}"
        inside = item["metadata"].get("namespace") or namespace or "default"
        return f"{_root(version)}/namespaces/{inside}/{plural}"

    def _of(self, version: str) -> dict[str, tuple[str, bool]]:
        if version not in self._known:
            resources = self._get(_root(version))["resources"]
            # `pods/status` and similar are subresources, not kinds.
            self._known[version] = {
                each["kind"]: (each["name"], each["namespaced"]) for each in resources if "/" not in each["name"]
            }
        return self._known[version]


def _root(version: str) -> str:
    return f"/apis/{version}" if "/" in version else f"/api/{version}"
