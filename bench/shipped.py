"""The benches of the shipped profile: the same pods with our own plugins, beside kube-scheduler's alone.

The yardstick of these rows is the same bench with kube-scheduler's plugins, in the same run: `ratio` is what the
workload, the tenant, the fabric and the devices cost.
"""

from collections.abc import Callable

from bench import decisions
from bench.cluster import CROWDED, PLAIN, Cluster, Kind
from bench.measure import Round
from bench.objects import ZONES, Template
from kubenexus.framework.profile import Profile
from kubenexus.plugins import default_profile, shipped_profile

Made = Callable[[], tuple[Round, Round]]

_BASIC = Template()
_AFFINE = Template(zones=ZONES[:2])
_DEPLOYMENT = Template(wish="deployment")


def pairs(nodes: int) -> dict[tuple[str, str], Made]:
    """By bench and case: makes the round with the shipped profile and the one with kube-scheduler's plugins."""

    def of(kind: Kind, make: Callable[[Cluster], Round]) -> Made:
        def round_(profile: Profile) -> Round:
            return make(Cluster(kind, nodes, profile))

        return lambda: (round_(shipped_profile()), round_(default_profile()))

    return {
        ("shipped.warm", "basic"): of(PLAIN, lambda cluster: decisions.warm(cluster, _BASIC, 50)),
        ("shipped.warm", "node-affinity"): of(PLAIN, lambda cluster: decisions.warm(cluster, _AFFINE, 50)),
        ("shipped.warm", "deployment"): of(PLAIN, lambda cluster: decisions.warm(cluster, _DEPLOYMENT, 50)),
        ("shipped.warm", "crowded"): of(CROWDED, lambda cluster: decisions.warm(cluster, _BASIC, 50)),
        ("shipped.cold", "basic"): of(PLAIN, lambda cluster: decisions.cold(cluster, False, 16)),
        ("shipped.cold", "node-affinity"): of(PLAIN, lambda cluster: decisions.cold(cluster, True, 16)),
        ("shipped.cold", "crowded"): of(CROWDED, lambda cluster: decisions.cold(cluster, False, 16)),
        ("shipped.mixed", "basic"): of(PLAIN, lambda cluster: decisions.mixed(cluster, False, 20)),
        ("shipped.mixed", "node-affinity"): of(PLAIN, lambda cluster: decisions.mixed(cluster, True, 20)),
        ("shipped.mixed", "crowded"): of(CROWDED, lambda cluster: decisions.mixed(cluster, False, 20)),
    }
