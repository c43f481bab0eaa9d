"""A page of a list is split into its items and read in portions: whatever the page holds, what is read is the same."""

import json
import random
from typing import Any

import pytest

from kubenexus.api import codec, json_outline
from kubenexus.api.codec import PORTION, ListPage, Unreadable, decode_list, read_object, split_list
from kubenexus.api.core import Pod
from kubenexus.api.json_outline import run_steps
from kubenexus.base.errors import Malformed


def a_pod(name: str, fields: bytes = b"{}", **spec: Any) -> bytes:
    pod = {"metadata": {"name": name, "namespace": "a", "managedFields": "HERE"}, "spec": spec}
    return json.dumps(pod).replace('"HERE"', "%s").encode() % fields


def a_page(items: list[bytes], more: bytes = b"next") -> bytes:
    head = b'{"kind":"PodList","metadata":{"resourceVersion":"42","continue":"%s"},"items":[%s]}'
    return head % (more, b",".join(items))


DEEP = b"[" * 1500 + b"]" * 1500
ITEMS = {
    "an ordinary one": a_pod("ordinary", nodeName="n1", containers=[{"name": "c"}]),
    "a deep one": a_pod("deep", DEEP),
    "brackets in strings": a_pod("brackets", note='"]}],{[\\', nodeSelector={"]": '\\"['}),
    "a long string": a_pod("long", note="<\\" * 50_000),
    "a key that is no UTF-8": a_pod("bytes", b'{"f:\xff":{}}'),
    "nulls": a_pod("nulls", tolerations=None, nodeName=None),
    "another shape": a_pod("shape", containers=5),
    "no name": a_pod(""),
    "no object": b"17",
    "no JSON": b'{"metadata":{"name":"p","namespace":"a"},"spec":{"priority":NaN}}',
}
AT_ONCE, BY_DECODER, BY_BRACKETS = "as a whole", "split by the decoder", "split by its brackets"


@pytest.fixture(params=[AT_ONCE, BY_DECODER, BY_BRACKETS])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of the ways in which pages are read, the page's length aside."""
    if request.param != AT_ONCE:
        monkeypatch.setattr(codec, "AT_ONCE", 0)
    if request.param == BY_BRACKETS:
        monkeypatch.setattr(codec, "SPLIT_AT_ONCE", 0)


def as_one(items: list[bytes]) -> ListPage[Pod]:
    """What the page comes to, item by item."""
    answers = [read_object(item, Pod) for item in items]
    bad = tuple(answer for answer in answers if isinstance(answer, Unreadable))
    return ListPage([answer for answer in answers if isinstance(answer, Pod)], "42", "next", bad)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("item", ITEMS.values(), ids=ITEMS)
def test_one_item_of_a_page_changes_nothing_for_the_others(item: bytes) -> None:
    ordinary = ITEMS["an ordinary one"]
    assert decode_list(a_page([ordinary, item, ordinary]), Pod) == as_one([ordinary, item, ordinary])


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("seed", range(10))
def test_a_page_of_anything_is_read_item_by_item(seed: int) -> None:
    items = random.Random(seed).choices([*ITEMS.values()], k=12)
    assert decode_list(a_page(items), Pod) == as_one(items)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"metadata":{},"items":[%s' % DEEP, id="cut off"),
        pytest.param(b'{"metadata":{},"items":[%s]}{}' % DEEP, id="two of them"),
        pytest.param(b'{"metadata":{},"items":{"a":%s}}' % DEEP, id="an object for items"),
        pytest.param(b'{"kind":"Status","items":[%s]}' % DEEP, id="an error"),
        pytest.param(b'{"kind":"PodList","metadata":%s}' % DEEP, id="no items"),
        pytest.param(b'{"metadata":{"continue":5},"items":[]}', id="a place to go on that is none"),
        pytest.param(b"[%s]" % DEEP, id="an array"),
    ],
)
def test_what_is_no_page_is_refused_in_whatever_way_it_is_read(body: bytes) -> None:
    with pytest.raises(Malformed, match=r"^list of Pod: "):
        decode_list(body, Pod)


def test_only_the_deep_item_of_a_page_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths: list[int] = []

    def counting(raw: bytes) -> bytes:
        lengths.append(len(raw))
        return json_outline.without_deep_parts(raw)

    monkeypatch.setattr(codec, "without_deep_parts", counting)
    ordinary, deep = ITEMS["a long string"], ITEMS["a deep one"]
    assert len(decode_list(a_page([*[ordinary] * 10, deep, *[ordinary] * 10]), Pod).items) == 21
    assert sum(lengths) < 2 * len(deep)


def large(name: str, size: int, fields: bytes = b"{}") -> bytes:
    return a_pod(name, fields, note="x" * size)


@pytest.mark.parametrize(
    ("items", "portions"),
    [
        pytest.param([], [0], id="nothing is one portion"),
        pytest.param([large("a", 10)] * 500, [500], id="small ones together"),
        pytest.param([large("a", PORTION // 2 - 200)] * 6, [2, 2, 2], id="a short page, by the mean of its items"),
        pytest.param([large("a", PORTION // 2 - 200)] * 10, [2] * 5, id="two halves fill one"),
        pytest.param([large("a", 5 * PORTION)] * 3, [1, 1, 1], id="large ones by themselves"),
        pytest.param([large("a", 5 * PORTION), *[large("b", 10)] * 5], [1, 5], id="small ones behind a large one"),
        pytest.param([large("a", PORTION // 8, DEEP)] * 4, [1, 1, 1, 1], id="deep ones, which cost more"),
        pytest.param([large("a", 10, DEEP)] * 40, [10, 10, 10, 10], id="small deep ones"),
        pytest.param([b"17"] * 40, [16, 16, 8], id="small ones that cannot be read"),
    ],
)
def test_the_portions_of_a_page(items: list[bytes], portions: list[int]) -> None:
    page = run_steps(split_list(a_page(items), Pod))
    found = list(page.portions)
    assert [len(each.items) + len(each.unreadable) for each in found] == portions
    assert {(each.resource_version, each.more) for each in found} == {("42", "next")}
    assert (page.count, page.more) == (len(items), "next")


@pytest.mark.parametrize(
    ("items", "steps"),
    [
        pytest.param([large("a", 10)] * 500, 0, id="a page of small ones is no work"),
        pytest.param([large("a", PORTION)] * 10, 1, id="a page that the decoder splits"),
        pytest.param([large("a", PORTION)] * 20, 20, id="one that is too long for it"),
        pytest.param([large("a", PORTION)] * 10 + [ITEMS["a deep one"]], 11, id="one that is too deep for it"),
    ],
)
def test_a_page_is_split_in_steps(items: list[bytes], steps: int) -> None:
    assert sum(1 for _ in split_list(a_page(items), Pod)) == steps
