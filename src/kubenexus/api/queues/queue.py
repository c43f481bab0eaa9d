"""The kind `Queue` (`scheduling.kubenexus.io/v1alpha1`), as deploy/queues.yaml defines it. Unknown fields are ignored,
and all are optional: `settings` checks what a queue sets."""

from kubenexus.api.core import ResourceList
from kubenexus.api.meta import ApiObject, Int64, ObjectMeta
from kubenexus.api.selectors import LabelSelector


class QueueTier(ApiObject):
    """What a queue sets for nodes of one hardware tier."""

    guaranteed: ResourceList = {}
    limit: ResourceList = {}
    borrowing_limit: ResourceList = {}
    lending_limit: ResourceList = {}
    namespace_limit: ResourceList = {}


class QueueSpec(ApiObject):
    """See docs/queues.md. The configuration file has queues of the same form."""

    parent: str = ""
    weight: Int64 = 1
    guaranteed: ResourceList = {}
    limit: ResourceList = {}
    borrowing_limit: ResourceList = {}
    lending_limit: ResourceList = {}
    namespace_limit: ResourceList = {}
    tiers: dict[str, QueueTier] = {}
    namespaces: list[str] = []
    namespace_selector: LabelSelector | None = None


class Queue(ApiObject):
    """A queue of jobs. It has no namespace, so tenants cannot create one."""

    metadata: ObjectMeta = ObjectMeta()
    spec: QueueSpec = QueueSpec()
