"""Nodes that accept no new pods, since they run a pod that cannot be decoded and so cannot be counted."""


class BlockedNodes:
    """The unreadable pods of each blocked node. A pod blocks at most one node. Only the ledger writes here."""

    def __init__(self) -> None:
        self._pods: dict[str, set[str]] = {}
        self._node_of: dict[str, str] = {}

    def __contains__(self, node: str) -> bool:
        return node in self._pods

    @property
    def pods(self) -> set[str]:
        return set(self._node_of)

    def node_of(self, pod: str) -> str:
        """Returns the node that this pod blocks, or ""."""
        return self._node_of.get(pod, "")

    def block(self, node: str, pod: str) -> None:
        """Records that a pod blocks a node. The pod must block no other node."""
        self._pods.setdefault(node, set()).add(pod)
        self._node_of[pod] = node

    def unblock(self, pod: str) -> str:
        """Removes the pod and returns the node that it blocked, or "". Other pods may still block that node."""
        node = self._node_of.pop(pod, "")
        if node:
            self._pods[node].remove(pod)
            if not self._pods[node]:
                del self._pods[node]
        return node

    def as_dict(self) -> dict[str, list[str]]:
        """Returns the unreadable pods by blocked node."""
        return {node: sorted(pods) for node, pods in self._pods.items()}
