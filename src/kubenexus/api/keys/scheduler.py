"""Keys by which a scheduler or the discovery of a node keeps notes for its successors."""

from kubenexus.api.keys.entry import KeyKind, define_key, section
from kubenexus.api.keys.lists import Csv
from kubenexus.api.keys.values import Text

SLOW_JOBS = define_key(
    "scheduling.kubenexus.io/slow-jobs",
    on="Lease",
    values=Text('[{"job":"shop/web-0","at":"2026-11-16T01:24:17.000000Z","count":1}]'),
    default=None,
    kind=KeyKind.ANNOTATION,
    meaning=(
        "Written by the leader on its own Lease: jobs whose decision took too long, when, and how often in a row. "
        "The next leader tries them after all others."
    ),
)

DISCOVERED = define_key(
    "discovery.kubenexus.io/written",
    on="Node",
    values=Csv(Text("gpu.kubenexus.io/model"), "gpu.kubenexus.io/count,gpu.kubenexus.io/model"),
    default=(),
    kind=KeyKind.ANNOTATION,
    meaning=(
        "Written by `kubenexus discover`: the labels and annotations of the node that it keeps. All others are left as "
        "they are."
    ),
)

SECTION = section("Notes", "What the scheduler and discovery keep for themselves. Not for you to set.", globals())
