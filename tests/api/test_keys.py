"""The registry: every spelling is read, the order of precedence holds, and nothing an object says breaks a reading."""

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubenexus.api import keys
from kubenexus.api.keys import (
    KeyEntry,
    KeyKind,
    Spelling,
    gang,
    gpu,
    numa,
    read_indexed_key,
    read_key,
    tenant,
    workload,
)
from kubenexus.api.keys.entry import slots
from kubenexus.api.keys.values import OneOf

ENTRIES = [each for section in keys.SECTIONS for each in section.entries]
INDEX: dict[str, int | str] = {
    "i": 0,
    "j": 1,
    "g": 12,
    "profile": "1g.10gb",
    "attribute": "count",
    "check": "xid-errors",
    "device": "0302_10de",
    "vendor": "1002",
    "id": "2330",
}

# A prefix of a DNS subdomain with a slash, then up to 63 characters: what the API server takes as a key.
QUALIFIED_NAME = re.compile(r"(?:(?=.{1,253}/)[a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?")
LABEL_VALUE = re.compile(r"[A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?", re.ASCII)


def filled(entry: KeyEntry[Any]) -> KeyEntry[Any]:
    return entry.at(*(INDEX[slot] for slot in entry.slots))


def sample(entry: KeyEntry[Any], spelling: Spelling) -> tuple[str, Any]:
    """A text that this spelling may carry, and the value it stands for."""
    for word, means in spelling.says.items():
        if means:
            return word, entry.values.parse(means)
    return entry.values.example, entry.values.parse(entry.values.example)


EVERY_WAY = [
    pytest.param(filled(entry), spelling, kind, id=f"{entry.on[0]}: {spelling.key} as {kind}")
    for entry in ENTRIES
    for spelling in filled(entry).spellings
    for kind in (KeyKind.LABEL, KeyKind.ANNOTATION)
    if kind in spelling.kind
]


@pytest.mark.parametrize(("entry", "spelling", "kind"), EVERY_WAY)
def test_every_spelling_is_read_wherever_it_may_stand(entry: KeyEntry[Any], spelling: Spelling, kind: KeyKind) -> None:
    text, value = sample(entry, spelling)
    said, nothing = {spelling.key: text}, {"unrelated": "label"}
    reading = read_key(entry, said, nothing) if kind is KeyKind.LABEL else read_key(entry, nothing, said)
    assert reading == keys.KeyReading(value, spelling.key)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: f"{entry.on[0]}: {entry.key}")
def test_an_object_without_the_key_gives_the_default(entry: KeyEntry[Any]) -> None:
    reading = read_key(filled(entry), {"app": "web"}, {})
    assert reading == keys.KeyReading(entry.default)
    assert not reading.is_set


@pytest.mark.parametrize("entry", [each for each in ENTRIES if each.slots], ids=lambda entry: entry.key)
def test_every_spelling_with_slots_is_found_by_its_index(entry: KeyEntry[Any]) -> None:
    index = tuple(INDEX[slot] for slot in entry.slots)
    for spelling in filled(entry).spellings:
        assert list(read_indexed_key(entry, {spelling.key: entry.values.example}, {})) == [index]


@pytest.mark.parametrize(
    ("entry", "labels", "annotations", "value", "source"),
    [
        pytest.param(
            gang.NAME,
            {"gang.scheduling.kubenexus.io/name": "b", "pod-group.scheduling.kubenexus.io/name": "a"},
            {},
            "a",
            "pod-group.scheduling.kubenexus.io/name",
            id="the canonical key goes before an alias",
        ),
        pytest.param(
            gang.NAME,
            {"gang.scheduling.kubenexus.io/name": "c"},
            {"pod-group.scheduling.sigs.k8s.io/name": "b"},
            "b",
            "pod-group.scheduling.sigs.k8s.io/name",
            id="an earlier alias goes before a later one, even as an annotation",
        ),
        pytest.param(
            gang.NAME,
            {"pod-group.scheduling.kubenexus.io/name": "a"},
            {"pod-group.scheduling.kubenexus.io/name": "b"},
            "a",
            "pod-group.scheduling.kubenexus.io/name",
            id="of one key the label goes before the annotation",
        ),
        pytest.param(
            tenant.PREEMPTIBLE,
            {"workload.kubenexus.io/preemptible": "false", "scheduling.kubenexus.io/backfill": "true"},
            {},
            False,
            "workload.kubenexus.io/preemptible",
            id="who fills gaps but refuses to be preempted contradicts himself",
        ),
    ],
)
def test_a_conflict_is_reported_and_the_first_spelling_counts(
    entry: KeyEntry[Any], labels: dict[str, str], annotations: dict[str, str], value: object, source: str
) -> None:
    reading = read_key(entry, labels, annotations)
    assert (reading.value, reading.source_key, len(reading.conflicts)) == (value, source, 1)
    assert source in reading.warnings[0]


@pytest.mark.parametrize(
    ("entry", "labels", "value"),
    [
        pytest.param(
            numa.POLICY,
            {
                "numa.scheduling.kubenexus.io/policy": "single-numa",
                "scheduling.kubenexus.io/numa-policy": "single-numa-node",
            },
            "single-numa-node",
            id="two words for one thing agree",
        ),
        pytest.param(
            gpu.TOPOLOGY,
            {"gpu.kubenexus.io/topology": "nvswitch", "nvidia.com/nvlink": "true"},
            "nvswitch",
            id="a hint does not contradict a better word",
        ),
        pytest.param(gpu.TOPOLOGY, {"nvidia.com/nvlink": "true"}, "nvlink", id="a hint alone is believed"),
        pytest.param(gpu.TOPOLOGY, {"nvidia.com/nvlink": "false"}, None, id="no NVLink does not tell what there is"),
        pytest.param(
            tenant.PREEMPTIBLE,
            {"workload.kubenexus.io/preemptible": "true", "scheduling.kubenexus.io/backfill": "false"},
            True,
            id="who does not fill gaps says nothing about preemption",
        ),
        pytest.param(workload.BATCH, {"spark-role": "", "tf-replica-type": "worker"}, True, id="marks never disagree"),
        pytest.param(gang.NAME, {"pod-group.scheduling.kubenexus.io/name": " "}, None, id="a blank name is no name"),
    ],
)
def test_no_conflict(entry: KeyEntry[Any], labels: dict[str, str], value: object) -> None:
    reading = read_key(entry, labels, {})
    assert (reading.value, reading.warnings) == (value, ())


def test_a_malformed_value_is_a_problem_that_names_the_key_and_the_next_spelling_counts() -> None:
    canonical, alias = gang.MIN_AVAILABLE.key, gang.MIN_AVAILABLE.aliases[0].key
    reading = read_key(gang.MIN_AVAILABLE, {canonical: "eight", alias: "4"}, {})
    assert (reading.value, reading.source_key, reading.conflicts) == (4, alias, ())
    assert reading.warnings == (f"label {canonical}: must be a whole number from 1, not 'eight'",)


def test_with_nothing_readable_the_default_counts() -> None:
    reading = read_key(numa.DISTANCE_WEIGHT, {}, {"scheduling.kubenexus.io/numa-distance-weight": "101"})
    assert (reading.value, reading.is_set) == (50, False)
    assert reading.warnings == (
        "annotation scheduling.kubenexus.io/numa-distance-weight: must be a whole number from 0 to 100, not '101'",
    )


def test_indexes_come_in_numerical_order_from_labels_and_annotations() -> None:
    labels = {"numa.kubenexus.io/node-10-cpus": "8-9", "numa.kubenexus.io/node-2-cpus": "0-3_6"}
    annotations = {"numa.kubenexus.io/node-3-cpus": "1,4-5", "numa.kubenexus.io/node-03-cpus": "1"}
    readings = read_indexed_key(numa.CPUS, labels, annotations)
    assert {index: reading.value for index, reading in readings.items()} == {
        (2,): (0, 1, 2, 3, 6),
        (3,): (1, 4, 5),
        (10,): (8, 9),
    }
    assert list(readings) == [(2,), (3,), (10,)]


def test_an_index_may_have_two_parts() -> None:
    labels = {"numa.kubenexus.io/node-0-distance-1": "21", "numa.kubenexus.io/node-0-distance-x": "21"}
    assert read_indexed_key(numa.DISTANCE, labels, {}) == {
        (0, 1): keys.KeyReading(21, "numa.kubenexus.io/node-0-distance-1")
    }


def test_aliases_of_an_index_are_one_index() -> None:
    labels = {"gpu.kubenexus.io/numa-node-3": "0", "gpu.kubenexus.io/gpu3-numa": "1"}
    (reading,) = read_indexed_key(numa.GPU, labels, {}).values()
    assert (reading.value, len(reading.conflicts)) == (0, 1)


def read_everywhere(text: str) -> list[str]:
    """What every spelling of every entry has to say about one text."""
    return [
        warning
        for entry in map(filled, ENTRIES)
        for spelling in entry.spellings
        for warning in read_key(entry, {spelling.key: text}, {spelling.key: text}).warnings
    ]


@settings(deadline=None)
@given(text=st.text())
def test_no_text_makes_a_reading_fail(text: str) -> None:
    read_everywhere(text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("x" * 2**20, id="a megabyte of one letter"),
        pytest.param("9" * 2**20, id="a megabyte of digits"),
        pytest.param("0-8191," * 2**17, id="all CPUs, a hundred thousand times"),
        pytest.param("0-" * 2**19, id="a range without an end"),
        pytest.param("-1", id="less than nothing"),
        pytest.param("1e99999", id="a huge exponent"),
        pytest.param("NaN", id="not a number"),
        pytest.param("\x00\n\ud800", id="what no event may hold"),
    ],
)
def test_hostile_text_costs_little_and_its_warning_is_short(text: str) -> None:
    warnings = read_everywhere(text)
    assert warnings
    assert all(len(warning) < 500 for warning in warnings)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: f"{entry.on[0]}: {entry.key}")
def test_the_table_is_sound(entry: KeyEntry[Any]) -> None:
    for spelling in filled(entry).spellings:
        assert QUALIFIED_NAME.fullmatch(spelling.key), f"{spelling.key} is not a key that the API server takes"
        if KeyKind.LABEL in spelling.kind:
            assert LABEL_VALUE.fullmatch(sample(entry, spelling)[0]), f"{spelling.key} cannot say this as a label"
    assert len({slots(each.key) for each in entry.spellings}) == 1, "all spellings have the same slots"
    hints = [each.hint for each in entry.spellings]
    assert hints == sorted(hints), "what is only a hint comes last"
    assert len(entry.keys) == len(entry.spellings), "a key is listed twice"
    assert entry.meaning.endswith(".")
    if isinstance(entry.values, OneOf):
        words = [*entry.values.words, *entry.values.also]
        assert words == [word.lower() for word in words]
        assert set(entry.values.also.values()) <= set(entry.values.words)


def test_no_two_entries_claim_one_key_on_one_kind_of_object() -> None:
    claims = [(entry.key, on) for entry in ENTRIES for on in entry.on]
    assert len(claims) == len(set(claims))
