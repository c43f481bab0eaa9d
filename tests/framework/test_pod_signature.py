"""Which pods are alike is decided by the fields that the enabled rules declare, and by nothing else."""

import pytest

from kubenexus.api.core import Pod
from kubenexus.base.errors import KubeNexusError
from kubenexus.framework.extension_points import HIGHER_IS_BETTER
from kubenexus.framework.job import JobView
from kubenexus.framework.pod_class import PodClass
from kubenexus.framework.pod_signature import FIELDS, PodSigner, affinity_without_node_names
from kubenexus.state.view import Nodes
from kubenexus.testing.builders import a_node, a_pod
from tests.framework.rules import Rule, lineup_with, scheduled

UNKNOWN = [
    "spec.nodeSelectors",
    "metadata",
    "spec",
    "status.phase",
    "labels",
    "",
    "metadata.labels",
    "metadata.labels[team",
    "metadata.labelsteam]",
]


@pytest.mark.parametrize("field", UNKNOWN)
def test_a_field_nobody_knows_is_an_error_that_names_it_and_the_known_ones(field: str) -> None:
    with pytest.raises(KubeNexusError) as caught:
        PodSigner([field])
    assert repr(field) in str(caught.value)
    for known in (*FIELDS, "metadata.labels[KEY]"):
        assert known in str(caught.value)


def test_every_known_field_can_be_read_and_tells_pods_apart_or_not() -> None:
    signer = PodSigner(FIELDS)
    assert signer.sign(a_pod("a", cpu=1)) == signer.sign(a_pod("b", cpu=1, uid="other"))
    assert signer.sign(a_pod("a", cpu=1)) != signer.sign(a_pod("a", cpu=2))


DIFFERENT = [
    pytest.param(a_pod("a", labels={"index": "7"}), True, id="a label nobody selects by"),
    pytest.param(a_pod("b", uid="u"), True, id="name and UID"),
    pytest.param(a_pod("a", annotations={"note": "x"}), True, id="an annotation"),
    pytest.param(a_pod("a", namespace="other"), True, id="the namespace, which no rule here reads"),
    pytest.param(a_pod("a", priority=7), True, id="the priority, which no rule here reads"),
    pytest.param(a_pod("a", cpu=1), False, id="a request, whichever rules are on: the ledger counts it"),
    pytest.param(a_pod("a", ports=[80]), False, id="a port of the host"),
    pytest.param(a_pod("a", tolerates=["x"]), False, id="a toleration, which a rule reads"),
    pytest.param(a_pod("a", labels={"team": "blue"}), False, id="a label that a rule reads by its key"),
]


@pytest.mark.parametrize(("pod", "alike"), DIFFERENT)
def test_pods_that_differ_only_in_this_are_one_class(pod: Pod, alike: bool) -> None:
    signer = PodSigner(["spec.tolerations", "metadata.labels[team]"])
    assert (signer.sign(pod) == signer.sign(a_pod("a"))) is alike


def test_labels_are_projected_onto_the_keys_that_a_rule_names() -> None:
    signer = PodSigner(["metadata.labels[team]"])
    web, api = (a_pod("a", labels={"app": app, "team": "x", "index": app}) for app in ("web", "api"))
    assert signer.sign(web) == signer.sign(api)
    assert signer.sign(web) != signer.sign(a_pod("a", labels={"team": "y"}))
    assert signer.class_pod_of(web).metadata.labels == {"team": "x"}


def test_a_label_that_is_missing_is_not_one_that_is_empty() -> None:
    signer = PodSigner(["metadata.labels[team]"])
    assert signer.sign(a_pod("a", labels={"team": ""})) != signer.sign(a_pod("a"))


class PrefersOwnTeam(Rule):
    reads = ("metadata.labels[team]",)
    normalize = HIGHER_IS_BETTER
    seen: list[dict[str, str]] = []

    def score(self, pod: PodClass, nodes: Nodes, job: JobView) -> object:
        self.seen.append(dict(pod.pod.metadata.labels))
        codes, column = nodes.label("team")
        return (codes == column.values.find(pod.pod.metadata.labels.get("team", ""))).astype(int)


def test_a_rule_sees_the_labels_it_declared_and_no_others() -> None:
    PrefersOwnTeam.seen.clear()
    nodes = [a_node("n1", labels={"team": "red"}), a_node("n2", labels={"team": "blue"})]
    pods = [a_pod(f"{team}-{i}", labels={"team": team, "index": str(i)}) for i in (1, 2) for team in ("red", "blue")]
    done = scheduled(PrefersOwnTeam, nodes, pods)
    assert done.placements == {"red-1": "n1", "red-2": "n1", "blue-1": "n2", "blue-2": "n2"}
    assert {"team": "red"} in PrefersOwnTeam.seen
    assert all("index" not in labels for labels in PrefersOwnTeam.seen)
    assert len(done.planner.class_cache) == 2, "four pods, two classes"


class ForgotToDeclare(Rule):
    normalize = HIGHER_IS_BETTER

    def score(self, pod: PodClass, nodes: Nodes, job: JobView) -> object:
        assert pod.spec.priority == 0, "not declared, so its default stands here"
        assert pod.pod.metadata.name == ""
        assert pod.pod.status.phase == ""
        return 0


def test_a_field_that_was_not_declared_reads_as_its_default() -> None:
    done = scheduled(ForgotToDeclare, [a_node("n1"), a_node("n2")], [a_pod("web", priority=9, phase="Pending")])
    assert not done.refusals


def test_an_unknown_field_of_a_plugin_fails_when_the_planner_is_made_not_in_a_decision() -> None:
    class Misspelt(Rule):
        reads = ("spec.tolerationz",)
        normalize = HIGHER_IS_BETTER

        def score(self, pod: PodClass, nodes: Nodes, job: JobView) -> object:
            return 0

    from kubenexus.cycle.class_cache import ClassCache

    with pytest.raises(KubeNexusError, match=r"spec\.tolerationz"):
        ClassCache(lineup_with(Misspelt))


def pinned(*nodes: str, expression: str = "") -> Pod:
    return a_pod("daemon", requires=[f"metadata.name In {node}{expression}" for node in nodes])


@pytest.mark.parametrize(
    ("pod", "lifted"),
    [
        pytest.param(pinned("n1"), True, id="a DaemonSet's pod"),
        pytest.param(pinned("n1", expression=" and zone In a"), True, id="with further wishes"),
        pytest.param(pinned("n1", "n1"), True, id="two terms, one node"),
        pytest.param(pinned("n1", "n2"), False, id="two terms, two nodes"),
        pytest.param(a_pod("a", requires=["metadata.name NotIn n1"]), False, id="anywhere but there"),
        pytest.param(a_pod("a", requires=["zone In a"]), False, id="no name at all"),
        pytest.param(a_pod("a", prefers={"metadata.name In n1": 5}), False, id="only preferred"),
        pytest.param(a_pod("a"), False, id="no affinity"),
    ],
)
def test_the_one_node_a_pod_is_made_for_is_lifted_out_of_its_class(pod: Pod, lifted: bool) -> None:
    assert (affinity_without_node_names(pod) is not None) is lifted


def test_pods_of_one_daemonset_are_one_class_wherever_they_belong() -> None:
    nodes = [a_node(f"n{i}") for i in range(3)]
    from kubenexus.testing.harness import run

    pods = [a_pod(f"daemon-{i}", cpu=1, requires=[f"metadata.name In n{i}"]) for i in range(3)]
    done = run(nodes, pods)
    assert done.placements == {"daemon-0": "n0", "daemon-1": "n1", "daemon-2": "n2"}
    assert len(done.planner.class_cache) == 1


@pytest.mark.parametrize(
    ("labels", "alike"),
    [
        pytest.param(10, True, id="of an ordinary spec are sorted"),
        pytest.param(40_000, False, id="of a spec of half a megabyte are taken as they come"),
    ],
)
def test_in_a_short_signature_the_maps(labels: int, alike: bool) -> None:
    signer, selector = PodSigner(FIELDS), {f"k{i}": "v" for i in range(labels)}
    first, other = a_pod("a", selects=selector), a_pod("b", selects=dict(reversed(selector.items())))
    assert signer.sign_in_short(first) == signer.sign_in_short(a_pod("c", selects=dict(selector)))
    assert (signer.sign_in_short(first) == signer.sign_in_short(other)) is alike
    assert signer.sign(first) == signer.sign(other)
