"""`KubeSchedulerConfiguration`, version `kubescheduler.config.k8s.io/v1`: its fields as in a file.

The defaults of the structs are the defaults of the configuration. They are kube-scheduler's, except for the rate of API
calls and our own names. Two schedulers that share a lease would take turns being idle, so ours has another name. A pod
without a scheduler name is kube-scheduler's, so our profile has a name of its own, too (DESIGN, rulings).

`config.args` has the arguments of plugins, `config.catalogue` the default plugins.
"""

from typing import Annotated, Any, Final

from kubenexus.api.meta import ApiObject, Int32, Int64
from kubenexus.client.rate_limiter import BURST, QPS
from kubenexus.config.decode import OR_DEFAULT
from kubenexus.config.durations import Duration

VERSION: Final = "kubescheduler.config.k8s.io/v1"
KIND: Final = "KubeSchedulerConfiguration"
SCHEDULER: Final = "kubenexus-scheduler"
NAMESPACE: Final = "kubenexus-system"

# The extension points of a profile, in the order a pod meets them. `multiPoint` is no point but names many.
POINTS: Final = (
    "preEnqueue",
    "queueSort",
    "preFilter",
    "filter",
    "postFilter",
    "preScore",
    "score",
    "reserve",
    "permit",
    "preBind",
    "bind",
    "postBind",
    "placementGenerate",
    "placementScore",
    "podGroupPostFilter",
)
MULTI_POINT: Final = "multiPoint"

Text = Annotated[str, OR_DEFAULT]
Span = Annotated[Duration, OR_DEFAULT]


class ConfigObject(ApiObject, omit_defaults=False):
    """The base of all parts of the document: camelCase in files, immutable; defaults are written."""


class LeaderElection(ConfigObject):
    leader_elect: bool = True
    lease_duration: Span = Duration.of("15s")
    renew_deadline: Span = Duration.of("10s")
    retry_period: Span = Duration.of("2s")
    resource_lock: Text = "leases"
    resource_name: Text = SCHEDULER
    resource_namespace: Text = NAMESPACE


class ClientConnection(ConfigObject):
    """`contentType` is always JSON, since only that is decoded. `qps` and `burst` default to the client's own:
    kube-scheduler's 50 a second would limit throughput."""

    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: Text = "application/json"
    qps: Annotated[float, OR_DEFAULT] = QPS
    burst: Annotated[Int32, OR_DEFAULT] = BURST


class Plugin(ConfigObject):
    """A plugin in a set. No weight, or 0, means 1. The weight counts for scores only."""

    name: str = ""
    weight: Int32 | None = None


class PluginSet(ConfigObject):
    enabled: list[Plugin] = []
    disabled: list[Plugin] = []


class Plugins(ConfigObject):
    """What a profile adds to the default plugins and removes from them, by point."""

    pre_enqueue: PluginSet = PluginSet()
    queue_sort: PluginSet = PluginSet()
    pre_filter: PluginSet = PluginSet()
    filter: PluginSet = PluginSet()
    post_filter: PluginSet = PluginSet()
    pre_score: PluginSet = PluginSet()
    score: PluginSet = PluginSet()
    reserve: PluginSet = PluginSet()
    permit: PluginSet = PluginSet()
    pre_bind: PluginSet = PluginSet()
    bind: PluginSet = PluginSet()
    post_bind: PluginSet = PluginSet()
    multi_point: PluginSet = PluginSet()
    placement_generate: PluginSet = PluginSet()
    placement_score: PluginSet = PluginSet()
    pod_group_post_filter: PluginSet = PluginSet()

    def at(self, point: str) -> PluginSet:
        """Returns the set at a point, by its name in a file."""
        found: PluginSet = getattr(self, "".join(f"_{c.lower()}" if c.isupper() else c for c in point))
        return found


class PluginConfig(ConfigObject):
    name: str = ""
    args: dict[str, Any] = {}


class KubeSchedulerProfile(ConfigObject):
    scheduler_name: str | None = None
    percentage_of_nodes_to_score: Int32 | None = None
    plugins: Plugins = Plugins()
    plugin_config: list[PluginConfig] = []


class KubeSchedulerConfiguration(ConfigObject):
    """The document. `extenders` are not decoded: any extender is refused."""

    api_version: str = ""
    kind: str = ""
    parallelism: Int32 = 16
    leader_election: LeaderElection = LeaderElection()
    client_connection: ClientConnection = ClientConnection()
    enable_profiling: bool = True
    enable_contention_profiling: bool | None = None
    percentage_of_nodes_to_score: Int32 = 0
    pod_initial_backoff_seconds: Int64 = 1
    pod_max_backoff_seconds: Int64 = 10
    profiles: list[KubeSchedulerProfile] = []
    extenders: list[Any] = []
    delay_cache_until_active: bool = False
