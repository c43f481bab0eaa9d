"""NodeDeclaredFeatures: some pods need features that only newer kubelets declare."""

from collections.abc import Mapping
from typing import Any

from kubenexus.api.core import Pod
from kubenexus.api.features import required_features
from kubenexus.framework.cluster_events import ActionType, ClusterEvent, ClusterEventWithHint, EventResource
from kubenexus.framework.extension_points import Depends
from kubenexus.framework.pod_class import PodClass
from kubenexus.framework.verdict import SKIP, Code, NodeVerdict, Reason, Skip
from kubenexus.state.view import Nodes


class NodeDeclaredFeatures:
    name = "NodeDeclaredFeatures"
    reads = ("spec.containers", "spec.initContainers", "spec.ephemeralContainers", "spec.hostNetwork", "spec.hostUsers")
    depends = Depends.NODE
    LACKING = Reason("node(s) didn't match Pod's required features", Code.UNRESOLVABLE)

    def __init__(self, args: Mapping[str, Any]) -> None:
        pass

    def pre_filter(self, pod: PodClass, nodes: Nodes) -> Skip | None:
        return None if required_features(pod.pod) else SKIP

    def filter(self, pod: PodClass, nodes: Nodes, verdict: NodeVerdict) -> None:
        needed = pod.cached(self.name, lambda: required_features(pod.pod))
        if needed:
            verdict.reject(~nodes.declaring_features(needed), self.LACKING)

    def _declares_otherwise(self, pod: Pod, event: ClusterEvent) -> bool:
        return event.old is None or event.old.status.declared_features != event.new.status.declared_features

    def _needs_otherwise(self, pod: Pod, event: ClusterEvent) -> bool:
        return required_features(event.old) != required_features(event.new)

    events_to_register = (
        ClusterEventWithHint(
            EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_DECLARED_FEATURE, _declares_otherwise
        ),
        ClusterEventWithHint(EventResource.TARGET_POD, ActionType.UPDATE, _needs_otherwise),
    )
