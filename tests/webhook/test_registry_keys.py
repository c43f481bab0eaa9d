"""Every key of the registry in every place: its example is allowed, and a value that cannot be read is refused."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from kubenexus.api.keys import SECTIONS, KeyEntry, KeyKind, Spelling
from kubenexus.api.keys.lists import Csv
from kubenexus.api.keys.unknown import is_ours
from kubenexus.api.keys.values import Present, Text
from kubenexus.webhook.validation import ValidationSettings, validate
from tests.webhook.requests import meta, request, template, within

OWNERS = ("Pod", "Job", "JobSet", "Deployment", "RayCluster", "SparkApplication")
SLOTS = {"<i>": "0", "<j>": "1", "<g>": "2", "<profile>": "1g.10gb", "<attribute>": "count", "<check>": "ecc"}
SLOTS |= {"<device>": "0302_10de", "<vendor>": "10de", "<id>": "2330"}


class Case(NamedTuple):
    """A spelling of a key, as a label or annotation of an object."""

    owner: str
    entry: KeyEntry[Any]
    spelling: Spelling
    kind: KeyKind

    @property
    def key(self) -> str:
        key = self.spelling.key
        for slot, text in SLOTS.items():
            key = key.replace(slot, text)
        return key

    @property
    def title(self) -> str:
        return f"{self.kind} {self.spelling.key} of {self.owner}"

    def review(self, text: str) -> Any:
        texts: tuple[dict[str, str], dict[str, str]] = ({}, {})
        texts[self.kind is KeyKind.ANNOTATION][self.key] = text
        on_pod = "Pod" in self.entry.on and self.owner in OWNERS
        data = within(self.owner, template(*texts)) if on_pod else {"metadata": meta(*texts)}
        return validate(request(self.owner, data), ValidationSettings())


def cases() -> Iterator[Case]:
    for section in SECTIONS:
        for entry in section.entries:
            places = set(entry.on) - {"Pod", "Lease", "ResourceReservation"}
            for owner in (*sorted(places), *(OWNERS if "Pod" in entry.on else ())):
                for spelling in entry.spellings:
                    for kind in (KeyKind.LABEL, KeyKind.ANNOTATION):
                        if kind in spelling.kind:
                            yield Case(owner, entry, spelling, kind)


def is_any_text(values: object) -> bool:
    return isinstance(values.of if isinstance(values, Csv) else values, Present | Text)


ALL = list(cases())
# Any text is a name, and a list of names may have any.
READ = [each for each in ALL if not is_any_text(each.entry.values)]
# What a spelling reads of its own words; the example is the canonical one.
EXAMPLE = {"nvidia.com/nvlink": "true", "topology.nvidia.com/nvlink": "true"}


def refusable(case: Case) -> bool:
    return is_ours(case.spelling.key) and not case.entry.recognised_only and case.owner != "Node"


def test_there_are_hundreds_of_good_and_bad_objects() -> None:
    assert len(ALL) >= 300
    assert len([each for each in READ if refusable(each)]) >= 300


def test_every_example_is_allowed() -> None:
    refused = {
        each.title: found.message
        for each in ALL
        if (found := each.review(EXAMPLE.get(each.key, each.entry.values.example))).message
    }
    assert refused == {}


@pytest.mark.parametrize("owner", sorted({each.owner for each in READ}))
def test_every_value_that_cannot_be_read_is_refused_with_key_and_value(owner: str) -> None:
    wrong = {}
    for case in READ:
        if case.owner != owner:
            continue
        found = case.review("?!")
        said = found.message if refusable(case) else "; ".join(found.warnings)
        if case.key not in said or (refusable(case) and found.allowed):
            wrong[case.title] = found
    assert wrong == {}


def test_a_message_names_the_template_the_key_the_value_and_what_was_expected() -> None:
    (case,) = [each for each in READ if each.title == "label workload.kubenexus.io/type of Job"]
    assert case.review("trainign").message == (
        "spec.template: label workload.kubenexus.io/type: must be one of training, inference, batch, service, "
        "interactive, not 'trainign'"
    )
