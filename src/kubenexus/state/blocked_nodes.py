"""Nodes that take nothing new, since they run a pod that could not be read: what it takes is not known."""


class BlockedNodes:
    """Only the ledger writes here. For each node the pods that fence it; a pod fences one node at a time."""

    def __init__(self) -> None:
        self._pods: dict[str, set[str]] = {}
        self._node_of: dict[str, str] = {}

    def __contains__(self, node: str) -> bool:
        return node in self._pods

    @property
    def pods(self) -> set[str]:
        return set(self._node_of)

    def node_of(self, pod: str) -> str:
        """The node that this pod fences, "" if it does not."""
        return self._node_of.get(pod, "")

    def block(self, node: str, pod: str) -> None:
        self._pods.setdefault(node, set()).add(pod)
        self._node_of[pod] = node

    def unblock(self, pod: str) -> str:
        """The node that this pod fenced, "" if it did not. Others may fence it still."""
        node = self._node_of.pop(pod, "")
        if node:
            self._pods[node].remove(pod)
            if not self._pods[node]:
                del self._pods[node]
        return node

    def as_dict(self) -> dict[str, list[str]]:
        """Fenced nodes, and the pods that could not be read."""
        return {node: sorted(pods) for node, pods in self._pods.items()}
