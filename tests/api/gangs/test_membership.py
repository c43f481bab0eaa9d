"""`is_gang_member` says of every pod whether `declared_gang` finds a gang, or fails to read one."""

from hypothesis import given
from hypothesis import strategies as st

from kubenexus.api.core import Pod, SchedulingGroup, WorkloadRef
from kubenexus.api.gangs.resolver import declared_gang, is_gang_member
from kubenexus.api.keys import gang as keys
from kubenexus.base.errors import Malformed
from kubenexus.testing.builders import a_pod

NAMES = (keys.WORKLOAD, keys.WORKLOAD_POD_GROUP, keys.POD_GROUP, keys.NAME, keys.KUEUE_NAME, keys.VOLCANO_NAME)
NUMBERS = (keys.MIN_AVAILABLE, keys.KUEUE_TOTAL_COUNT)
SPELLINGS = sorted({each.key for entry in (*NAMES, *NUMBERS) for each in entry.spellings})
texts = st.dictionaries(
    st.sampled_from([*SPELLINGS, "app"]), st.sampled_from(["llama", "4", "", " ", "0", "a b", "x" * 300]), max_size=4
)


def declares(pod: Pod) -> bool:
    try:
        return declared_gang(pod) is not None
    except Malformed:
        return True


@given(labels=texts, annotations=texts, field=st.sampled_from(["", "", "", "group", "ref"]))
def test_a_member_is_a_pod_with_a_declaration(labels: dict[str, str], annotations: dict[str, str], field: str) -> None:
    group = SchedulingGroup(pod_group_name="llama") if field == "group" else None
    ref = WorkloadRef(name="llama", pod_group="workers") if field == "ref" else None
    pod = a_pod("a", labels=labels, annotations=annotations, scheduling_group=group, workload_ref=ref)
    assert is_gang_member(pod) == declares(pod)
