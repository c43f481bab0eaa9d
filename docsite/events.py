"""The page of events and conditions. The reasons are those of the code; a reason without a meaning here is an error."""

from docsite.tables import table
from kubenexus.observe import conditions, events, group_conditions
from kubenexus.observe.reservation_status import ACTIVE

HEAD = """# Events and conditions

`kubectl describe pod` shows both. A pod gets a new event when the reason changes; an event that repeats is one object
with a count. A note never names pods of other tenants, nor labels or taints of nodes: every reader of the namespace can
read it.
"""

MEANINGS = {
    events.SCHEDULED: ("Normal", "the pod was bound to the node that the note names"),
    events.FAILED: ("Warning", "the job was tried and refused: the sentence has the reasons by number of nodes"),
    events.REJECTED: ("Warning", "the job is not tried: a gate, a queue at its limit, or a gang with members missing"),
    events.UNCLEAR: ("Warning", "two declarations of the pod's gang differ; the note names the one that counts"),
    events.DEVICES_UNCLEAR: ("Warning", "a key about devices cannot be read, or two of them disagree"),
    events.PLACEMENT_UNCLEAR: ("Warning", "a key about placement cannot be read, or two of them disagree"),
    events.RELEASED: ("Warning", "the gang was not complete in time, and its members are evicted"),
    events.STUCK: ("Warning", "the gang was not complete in time, and this member has no controller: it stays"),
    events.PREEMPTED: ("Normal", "the pod was evicted so that a job of higher rank starts"),
}
TYPES = {events.NORMAL, events.WARNING}

CONDITIONS = [
    ("Pod", conditions.POD_SCHEDULED, conditions.UNSCHEDULABLE, "tried and refused; autoscalers read this"),
    ("Pod", conditions.POD_SCHEDULED, conditions.GATED, "not tried: a scheduling gate, or members of the gang missing"),
    ("Pod", conditions.POD_SCHEDULED, conditions.ERROR, "a bind or a decision failed; it is tried again"),
    ("Pod", "scheduling.kubenexus.io/GangComplete", "", "on three members of a gang without PodGroup: it was complete"),
    ("Pod", "DisruptionTarget", "PreemptionByScheduler", "evicted for a job of higher rank"),
    ("PodGroup", "PodGroupInitiallyScheduled", group_conditions.SCHEDULED, "enough members were bound; stays true"),
    ("ResourceReservation", ACTIVE, "", "room is kept"),
]  # fmt: skip


def reasons() -> set[str]:
    """Every reason that `observe.events` defines: its public constants that are words in camel case."""
    constants = {name: getattr(events, name) for name in vars(events) if name.isupper()}
    return {value for value in constants.values() if isinstance(value, str) and value.isalpha()} - TYPES


def page() -> str:
    rows = [(f"`{reason}`", *MEANINGS[reason]) for reason in sorted(reasons())]
    shown = [(kind, f"`{name}`", f"`{reason}`" if reason else "", text) for kind, name, reason, text in CONDITIONS]
    return "\n".join(
        [
            HEAD,
            "## Events of pods\n",
            table(("reason", "type", "when"), rows),
            "\n## Conditions\n",
            table(("object", "condition", "reason", "when"), shown),
        ]
    )
