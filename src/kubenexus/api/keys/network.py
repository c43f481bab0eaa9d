"""Keys of a node's place in the network, from its NVLink domain to its region, and of a pod's demands on the fabric."""

from kubenexus.api.keys.entry import KeyKind, Spelling, define_key, section
from kubenexus.api.keys.lists import line_rate
from kubenexus.api.keys.values import Bool, OneOf, Text

# From the best to the least.
_FABRICS = ("nvswitch", "nvlink", "infiniband", "roce", "ethernet")
_FABRIC_NICKNAMES = {"ib": "infiniband", "rdma": "roce", "eth": "ethernet"}

FABRIC_TYPE = define_key(
    "network.kubenexus.io/fabric-type",
    on="Node",
    values=OneOf(_FABRICS, also=_FABRIC_NICKNAMES),
    default=None,
    otherwise="not known",
    meaning="The fastest fabric that the node is on.",
    aliases=("network.kubenexus.io/fabric", "fabric.kubenexus.io/type"),
)

FABRIC_ID = define_key(
    "network.kubenexus.io/fabric-id",
    on="Node",
    values=Text("fabric-01"),
    default=None,
    meaning="Which fabric: nodes with the same id reach each other over it.",
    aliases=("fabric.kubenexus.io/domain",),
)

HOSTNAME = define_key(
    "kubernetes.io/hostname",
    on="Node",
    values=Text("node-1"),
    default=None,
    kind=KeyKind.LABEL,
    meaning="The node itself, the innermost level of the topology. Written by the kubelet.",
)

SWITCH = define_key(
    "topology.kubernetes.io/switch",
    on="Node",
    values=Text("tor-switch-1"),
    default=None,
    kind=KeyKind.LABEL,
    meaning="The top-of-rack switch, the level between an NVLink domain and a rack.",
)

RACK = define_key(
    "network.kubenexus.io/rack-id",
    on="Node",
    values=Text("rack-a"),
    default=None,
    meaning="The rack.",
    aliases=(Spelling("topology.kubernetes.io/rack", KeyKind.LABEL), "fabric.kubenexus.io/rack"),
)

SPINE = define_key(
    "network.kubenexus.io/spine",
    on="Node",
    values=Text("spine-2"),
    default=None,
    meaning="The spine switch or block, the level between a rack and a zone.",
)

ZONE = define_key(
    "topology.kubernetes.io/zone",
    on="Node",
    values=Text("us-east-1a"),
    default=None,
    kind=KeyKind.LABEL,
    meaning="The zone.",
    aliases=(Spelling("network.kubenexus.io/az"),),
)

REGION = define_key(
    "topology.kubernetes.io/region",
    on="Node",
    values=Text("us-east-1"),
    default=None,
    kind=KeyKind.LABEL,
    meaning="The region.",
)

BANDWIDTH = define_key(
    "network.kubenexus.io/bandwidth",
    on="Node",
    values=line_rate("200Gbps"),
    default=None,
    meaning="The node's own line rate; breaks ties between otherwise equal places.",
)

SENSITIVE = define_key(
    "scheduling.kubenexus.io/network-sensitive",
    on="Pod",
    values=Bool(),
    default=False,
    meaning="Closeness in the network counts more for this pod.",
)

MIN_FABRIC = define_key(
    "scheduling.kubenexus.io/min-fabric-tier",
    on="Pod",
    values=OneOf(_FABRICS, also=_FABRIC_NICKNAMES),
    default=None,
    meaning="Only nodes on this fabric or a better one (in the order given).",
)

CO_LOCATE = define_key(
    "scheduling.kubenexus.io/co-locate",
    on="Pod",
    values=OneOf(("strict", "preferred", "none")),
    default="none",
    meaning="Whether the members of the gang must, or should, share one NVLink domain.",
)

REQUIRE_CLIQUE = define_key(
    "scheduling.kubenexus.io/require-clique",
    on="Pod",
    values=Bool(),
    default=False,
    meaning="The members of the gang must share one NVLink domain.",
)

SECTION = section(
    "Network", "The levels of the topology, from the inside out, and what pods ask of the fabric.", globals()
)
