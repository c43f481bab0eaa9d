"""What plugins sign for a template is remembered, and is what they would sign for each pod."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.api.core import Pod
from kubenexus.api.keys import gpu, network, tenant, workload
from kubenexus.api.meta import ObjectMeta, OwnerReference
from kubenexus.api.workloads import Namespace
from kubenexus.cycle.class_cache import ClassCache
from kubenexus.cycle.template_signatures import _WORDS, MAX_WEIGHT, TemplateSignatures, variant_of
from kubenexus.plugins import profile_plugins, shipped_profile
from kubenexus.state.ledger import Ledger
from kubenexus.testing.builders import ZONE, a_node, a_pod
from kubenexus.testing.harness import a_ledger
from tests.api.numa.builders import a_numa_pod, an_nrt, guaranteed

PLUGINS = profile_plugins(shipped_profile())
TEXTS: dict[str, tuple[str, ...]] = {
    workload.TYPE.key: ("training", "Batch", "nonsense"),
    workload.PLACEMENT.key: ("pack", "spread"),
    tenant.PREEMPTIBLE.key: ("true", "false"),
    tenant.POD_TIER.key: ("bronze", "gold"),
    tenant.SPREAD_ZONES.key: ("true", "false"),
    tenant.MIN_ZONES.key: ("2", "x"),
    network.MIN_FABRIC.key: ("infiniband", "ib", "?"),
    network.SENSITIVE.key: ("true",),
    gpu.VRAM_REQUEST.key: ("16Gi", "80Gi"),
    gpu.FRACTION.key: ("0.5", "2"),
    "spark-role": ("driver",),
    "training.kubeflow.org/job-name": ("a", "b"),
    "app.kubernetes.io/name": ("web", "jupyter"),
    "pod-group.scheduling.kubenexus.io/name": ("g",),
    "pod-group.scheduling.kubenexus.io/min-available": ("2", "0"),
    "kueue.x-k8s.io/queue-name": ("q",),
    "app": ("a", "b"),
    "unrelated.example/label": ("1", "2"),
}
OWNERS = [[], [OwnerReference(kind="Job", api_version="batch/v1", uid="j", controller=True)]]
OWNERS += [[OwnerReference(kind="ReplicaSet", api_version="apps/v1", uid=uid, controller=True)] for uid in ("r1", "r2")]
SPECS = [a_pod(cpu=1).spec, a_pod(gpu=1).spec, a_pod(gpu=4, priority=-1).spec, a_pod(image="jupyter/base").spec]

WORDS = {
    key: (*words, "nonsense", "other nonsense", "1", " ", *[w.upper() for w in words]) for key, words in _WORDS.items()
}


@given(st.data())
def test_texts_that_count_as_equal_are_signed_alike(data: st.DataObject) -> None:
    """Of all keys with words, and of marks: plugins read no more of a text than which of the words it is."""
    ledger = a_cluster()
    keys = data.draw(st.lists(st.sampled_from(sorted(WORDS)), min_size=1, max_size=3, unique=True))
    one, other = ({key: data.draw(st.sampled_from(WORDS[key])) for key in keys} for _ in range(2))
    spec, as_labels = data.draw(st.sampled_from(SPECS)), data.draw(st.booleans())
    first, second = (
        Pod(
            metadata=ObjectMeta(name="p", labels=texts) if as_labels else ObjectMeta(name="p", annotations=texts),
            spec=spec,
        )
        for texts in (one, other)
    )
    if variant_of(first, ledger.nodes) == variant_of(second, ledger.nodes):
        assert signed_by_each(first, ledger) == signed_by_each(second, ledger)


@st.composite
def template_pods(draw: st.DrawFn) -> Pod:
    texts = st.dictionaries(st.sampled_from(list(TEXTS)), st.integers(0, 5), max_size=4)
    labels, annotations = (
        {key: TEXTS[key][number % len(TEXTS[key])] for key, number in draw(texts).items()} for _ in range(2)
    )
    meta = ObjectMeta(
        name="p",
        namespace=draw(st.sampled_from(["gold", "plain"])),
        labels=labels,
        annotations=annotations,
        owner_references=draw(st.sampled_from(OWNERS)),
    )
    return Pod(metadata=meta, spec=draw(st.sampled_from(SPECS)))


def a_cluster() -> Ledger:
    ledger = a_ledger([a_node(f"n{zone}", labels={ZONE: zone}) for zone in ("a", "b")])
    ledger.upsert_namespace(Namespace(metadata=ObjectMeta(name="gold", labels={tenant.TIER.key: "gold"})))
    return ledger


def signed_by_each(pod: Pod, ledger: Ledger) -> dict[str, Any]:
    found = {plugin.name: plugin.sign(pod, ledger.nodes) for plugin in PLUGINS.signs}
    return {name: what for name, what in found.items() if what is not None}


@given(st.lists(template_pods(), min_size=1, max_size=12))
def test_a_remembered_signature_is_what_the_plugins_would_sign(pods: list[Pod]) -> None:
    ledger, cache = a_cluster(), ClassCache(PLUGINS)
    for pod in pods:
        assert dict(cache.make_class(pod, ledger.nodes).signed) == signed_by_each(pod, ledger)


@given(st.lists(template_pods(), min_size=2, max_size=12))
def test_short_signatures_are_equal_where_signatures_are(pods: list[Pod]) -> None:
    ledger, cache = a_cluster(), ClassCache(PLUGINS)
    copies = [msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec)) for pod in pods]
    pairs = {
        (cache.signature(pod, ledger.nodes, lift=False), cache.short_signature(pod, ledger.nodes))
        for pod in (*pods, *copies)
    }
    assert len(pairs) == len({one for one, _ in pairs}) == len({short for _, short in pairs})


def test_plugins_are_called_for_the_first_pod_of_a_template_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    plugin, sign = PLUGINS.signs_by_template[0]

    def counted(pod: Pod, nodes: Any) -> Any:
        calls.append(pod.metadata.name)
        return sign(pod, nodes)

    monkeypatch.setattr(PLUGINS, "signs_by_template", [(plugin, counted)])
    ledger, cache, template = a_cluster(), ClassCache(PLUGINS), a_pod("first")
    for name in ("first", "second", "third"):
        meta = msgspec.structs.replace(template.metadata, name=name, labels={"pod-template-hash": name})
        cache.lookup(msgspec.structs.replace(template, metadata=meta), ledger.nodes)
    assert calls == ["first"]


def test_a_namespace_with_another_tier_is_another_variant() -> None:
    ledger, pod = a_cluster(), a_pod(namespace="gold", gpu=1)
    before = variant_of(pod, ledger.nodes)
    ledger.upsert_namespace(Namespace(metadata=ObjectMeta(name="gold", labels={tenant.TIER.key: "silver"})))
    assert variant_of(pod, ledger.nodes) != before


def test_a_template_is_signed_again_once_a_node_reports_its_numa_nodes() -> None:
    ledger, cache = a_cluster(), ClassCache(PLUGINS)
    pod = a_numa_pod(guaranteed("main", "2"))
    assert "NUMATopology" not in cache.make_class(pod, ledger.nodes).signed
    ledger.upsert_node_topology(an_nrt([{"cpu": (8, 8, 8)}], name="na"))
    ledger.read_devices()
    assert dict(cache.make_class(pod, ledger.nodes).signed) == signed_by_each(pod, ledger)
    assert "NUMATopology" in cache.make_class(pod, ledger.nodes).signed


def test_long_texts_are_not_remembered() -> None:
    pod = a_pod(annotations={gpu.TYPE.key: "x" * 10_000})
    assert variant_of(pod, a_cluster().nodes) is None


def test_a_hundred_thousand_labels_are_looked_up_by_known_keys() -> None:
    many = {f"l{i}": "x" for i in range(100_000)} | {workload.TYPE.key: "batch"}
    assert variant_of(a_pod(labels=many), a_cluster().nodes)[1] == ((workload.TYPE.key, "batch"),)


def test_the_memory_is_bounded_by_the_size_of_templates() -> None:
    known = TemplateSignatures()
    for number in range(MAX_WEIGHT + 100):
        known.put(a_pod(cpu=1), number, {})
    assert len(known) <= MAX_WEIGHT
    for number in range(MAX_WEIGHT // 20):
        known.put(a_pod(image="x" * 20_000), number, {})
    assert len(known) <= MAX_WEIGHT // 19


@pytest.mark.parametrize(
    "pod", [a_pod(image="x" * 1_000_000), a_pod(tolerates=["k" * 200_000 + ":NoSchedule"])], ids=["image", "toleration"]
)
def test_a_large_template_is_not_remembered(pod: Pod) -> None:
    known = TemplateSignatures()
    known.put(pod, 1, {})
    assert len(known) == 0


def test_the_kind_of_an_owner_is_cut() -> None:
    pod = Pod(metadata=ObjectMeta(owner_references=[OwnerReference(kind="k" * 100_000, controller=True)]))
    assert len(variant_of(pod, a_cluster().nodes)[3][0]) == 128


BEFORE = ObjectMeta(name="p-1", namespace="plain", labels={"app": "a"}, annotations={gpu.FRACTION.key: "0.5"})


@pytest.mark.parametrize(
    ("changes", "alike"),
    [
        pytest.param({"name": "p-2", "uid": "2"}, True, id="another name"),
        pytest.param({"labels": {"app": "a"}}, True, id="equal labels"),
        pytest.param({"labels": {"app": "b"}}, False, id="another label"),
        pytest.param({"annotations": {gpu.FRACTION.key: "0.25"}}, False, id="another annotation"),
        pytest.param({"namespace": "gold"}, False, id="another namespace"),
        pytest.param({"owner_references": OWNERS[1]}, False, id="another owner"),
    ],
)
def test_the_pod_before_counts_if_nothing_tells_the_two_apart(changes: dict[str, Any], alike: bool) -> None:
    ledger, known, spec = a_cluster(), TemplateSignatures(), SPECS[0]
    signed = {"DeviceFit": (500, 0)}
    known.keep(Pod(metadata=BEFORE, spec=spec), ledger.nodes, signed)
    after = Pod(metadata=msgspec.structs.replace(BEFORE, **changes), spec=spec)
    assert known.of_pod_before(after, ledger.nodes) == (signed if alike else None)
    assert known.of_pod_before(after, a_cluster().nodes) is None


def test_the_pod_before_does_not_count_once_a_tenant_changed() -> None:
    ledger, known, pod = a_cluster(), TemplateSignatures(), Pod(metadata=BEFORE, spec=SPECS[0])
    known.keep(pod, ledger.nodes, {})
    ledger.upsert_namespace(Namespace(metadata=ObjectMeta(name="plain", labels={tenant.TIER.key: "gold"})))
    assert known.of_pod_before(pod, ledger.nodes) is None


@pytest.mark.parametrize(
    "meta",
    [
        ObjectMeta(labels={f"l{i}": "x" for i in range(100)}),
        ObjectMeta(annotations={"a": "x" * 10_000}),
        ObjectMeta(owner_references=[OwnerReference(kind="k" * 1000)]),
        ObjectMeta(owner_references=[*OWNERS[1], *OWNERS[2]]),
    ],
    ids=["many labels", "a long annotation", "a long kind", "two owners"],
)
def test_a_pod_with_many_or_long_texts_is_not_kept_for_the_next(meta: ObjectMeta) -> None:
    ledger, known, pod = a_cluster(), TemplateSignatures(), Pod(metadata=meta, spec=SPECS[0])
    known.keep(pod, ledger.nodes, {})
    assert known.of_pod_before(pod, ledger.nodes) is None
