"""Kueue's queues (`kueue.x-k8s.io`), as far as they tell whose a pod is. Kueue need not be installed."""

from kubenexus.api.meta import ApiObject, ObjectMeta
from kubenexus.api.selectors import LabelSelector


class LocalQueueSpec(ApiObject):
    cluster_queue: str = ""


class LocalQueue(ApiObject):
    """A queue of a namespace. Pods name it in the label `kueue.x-k8s.io/queue-name`."""

    metadata: ObjectMeta = ObjectMeta()
    spec: LocalQueueSpec = LocalQueueSpec()


class ClusterQueueSpec(ApiObject):
    """`namespace_selector` selects the namespaces whose LocalQueues may use the quota: without it none, as in Kueue."""

    namespace_selector: LabelSelector | None = None


class ClusterQueue(ApiObject):
    """The quota behind LocalQueues of the namespaces that it selects."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ClusterQueueSpec = ClusterQueueSpec()
