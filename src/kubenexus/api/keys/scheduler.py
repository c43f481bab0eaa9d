"""Keys that a scheduler writes for its successors on an object of its own."""

from kubenexus.api.keys.entry import KeyKind, define_key, section
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

SECTION = section("Scheduler", "What the scheduler keeps on its own objects. Not for you to set.", globals())
