"""`KubeSchedulerConfiguration`, version `kubescheduler.config.k8s.io/v1`: its fields as they stand in a file.

The defaults of the structs are the defaults of the configuration: kube-scheduler's, but for the rate of calls
and for what names *us*. Two schedulers that share a lease take turns being idle, so ours is our own; and a pod that
asks for no scheduler is kube-scheduler's, so our profile has a name of its own, too (DESIGN, rulings).

`config.args` has the arguments of plugins, `config.catalogue` the plugins that are on when nothing is said.
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

# The points of a profile, in the order a pod meets them. `multiPoint` is no point but a way to name many.
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
    """The base of all parts of the document: camelCase outside, immutable inside; defaults are said when written."""


class LeaderElection(ConfigObject):
    leader_elect: bool = True
    lease_duration: Span = Duration.of("15s")
    renew_deadline: Span = Duration.of("10s")
    retry_period: Span = Duration.of("2s")
    resource_lock: Text = "leases"
    resource_name: Text = SCHEDULER
    resource_namespace: Text = NAMESPACE


class ClientConnection(ConfigObject):
    """`contentType` is JSON here, whatever it says: that is what we decode. `qps` and `burst` are the client's own when
    nothing is said: kube-scheduler's 50 a second would be what limits us."""

    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: Text = "application/json"
    qps: Annotated[float, OR_DEFAULT] = QPS
    burst: Annotated[Int32, OR_DEFAULT] = BURST


class Plugin(ConfigObject):
    """No weight, or 0, means 1. It counts for scores only."""

    name: str = ""
    weight: Int32 | None = None


class PluginSet(ConfigObject):
    enabled: list[Plugin] = []
    disabled: list[Plugin] = []


class Plugins(ConfigObject):
    """What a profile adds to the default plugins and takes from them, by point."""

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
        """The set at a point, by its name in a file."""
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
    """`extenders` are kept unread: they are refused whatever they say."""

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
