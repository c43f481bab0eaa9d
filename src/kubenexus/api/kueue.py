"""Kueue's queues (`kueue.x-k8s.io`), as far as they tell whose a pod is. Kueue need not be installed."""

from kubenexus.api.meta import ApiObject, ObjectMeta


class LocalQueueSpec(ApiObject):
    cluster_queue: str = ""


class LocalQueue(ApiObject):
    """A queue of a namespace. Pods name it in the label `kueue.x-k8s.io/queue-name`."""

    metadata: ObjectMeta = ObjectMeta()
    spec: LocalQueueSpec = LocalQueueSpec()


class ClusterQueue(ApiObject):
    """The quota behind LocalQueues of any namespaces."""

    metadata: ObjectMeta = ObjectMeta()
