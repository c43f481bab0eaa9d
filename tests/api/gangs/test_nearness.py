"""How close the members of a gang must, or should, be; and what the levels are called."""

import pytest

from kubenexus.api.core import SchedulingGroup
from kubenexus.api.gangs.declaration import TopologyRequest
from kubenexus.api.gangs.levels import DEFAULT_LEVELS, TopologyLevel, topology_level
from kubenexus.base.errors import Malformed
from kubenexus.state.pod_group_store import PodGroupStore
from tests.api.gangs.builders import a_member, gang_of, known, pod_group

RACK = "topology.kubernetes.io/rack"


def near(**notes: str) -> TopologyRequest:
    prefixes = {"required": "kueue.x-k8s.io/podset-", "preferred": "kueue.x-k8s.io/podset-"}
    spelled = {"required": "required-topology", "preferred": "preferred-topology"}
    annotations = {
        prefixes.get(word, "scheduling.kubenexus.io/") + spelled.get(word, word.replace("_", "-")): value
        for word, value in notes.items()
    }
    gang = gang_of(a_member("a", annotations=annotations), PodGroupStore())
    assert gang is not None
    return gang.topology


def test_nothing_is_said() -> None:
    assert near() == TopologyRequest()


def test_kueues_annotations() -> None:
    assert near(required=RACK) == TopologyRequest(RACK, "", explicit=True)
    assert near(preferred=RACK) == TopologyRequest("", RACK, explicit=True)
    assert near(required="zone", preferred="rack") == TopologyRequest("zone", "rack", explicit=True)


def test_our_own_annotations_mean_the_nvlink_domain() -> None:
    assert near(co_locate="strict") == near(require_clique="true") == TopologyRequest("clique", "", explicit=True)
    assert near(co_locate="preferred") == TopologyRequest("", "clique", explicit=True)
    assert near(co_locate="none") == near(require_clique="false") == TopologyRequest("", "", explicit=True)


def test_a_level_that_is_named_goes_before_the_nvlink_domain() -> None:
    assert near(required="zone", co_locate="strict").required == "zone"


@pytest.mark.parametrize(("word", "value"), [("co_locate", "strickt"), ("require_clique", "maybe")])
def test_a_requirement_is_not_lost_to_a_typing_error(word: str, value: str) -> None:
    key = f"scheduling.kubenexus.io/{word.replace('_', '-')}"
    with pytest.raises(Malformed, match=f"annotation {key}: must be .*, not '{value}'"):
        near(**{word: value})


def test_kubernetes_own_constraint_goes_before_annotations() -> None:
    notes = {"kueue.x-k8s.io/podset-required-topology": "zone", "kueue.x-k8s.io/podset-preferred-topology": "rack"}
    pod = a_member("a", annotations=notes, scheduling_group=SchedulingGroup(pod_group_name="llama"))
    gang = gang_of(pod, known(pod_group=pod_group("llama", 2, RACK)))
    assert gang is not None
    assert gang.topology == TopologyRequest(RACK, "rack", explicit=True)


def test_the_levels_from_the_inside_out() -> None:
    assert [level.name for level in DEFAULT_LEVELS] == ["hostname", "clique", "tor", "rack", "block", "zone", "region"]
    labels = [key for level in DEFAULT_LEVELS for key in level.keys]
    assert len(labels) == len(set(labels)), "each label belongs to one level"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("rack", "rack"),
        ("node", "hostname"),
        ("nvlink", "clique"),
        ("switch", "tor"),
        ("spine", "block"),
        ("nvidia.com/gpu.clique", "clique"),
        ("kubernetes.io/hostname", "hostname"),
    ],
)
def test_a_level_by_name_or_label(text: str, name: str) -> None:
    assert topology_level(text).name == name


def test_a_label_is_a_level_by_itself() -> None:
    assert topology_level("example.com/hall") == TopologyLevel("example.com/hall", ("example.com/hall",))
    assert topology_level(RACK) == TopologyLevel(RACK, (RACK,)), "not its aliases"


def test_a_configured_level_takes_the_place_of_ours() -> None:
    mine = (TopologyLevel("rack", ("example.com/rack",)), TopologyLevel("spine", ("example.com/spine",)))
    assert topology_level("rack", mine).keys == ("example.com/rack",)
    assert topology_level("spine", mine).name == "spine"
