"""From bytes to objects: nulls forgiven, the rest named, and one bad object never spoils the others."""

import json
from typing import Any

import pytest

from kubenexus.api.codec import (
    Unreadable,
    as_unreadable,
    decode_list,
    decode_node,
    decode_pod,
    encode,
    from_data,
    from_json,
    read_object,
)
from kubenexus.api.core import Node, Pod, Toleration
from kubenexus.api.resources import footprint
from kubenexus.api.workloads import NameOnly
from kubenexus.base.errors import Malformed
from kubenexus.client.watch_events import decode_watch_lines
from kubenexus.state.object_kinds import KINDS

Json = dict[str, Any]

META = {"name": "web-0", "namespace": "default", "uid": "u-1", "resourceVersion": "7"}


def raw(value: Any) -> bytes:
    return json.dumps(value).encode()


def a_pod(**parts: Any) -> Json:
    return {"metadata": META, "spec": {"nodeName": "n1", "containers": [{"name": "c"}]}, **parts}


def a_list(*items: Any, **more: Any) -> bytes:
    return raw(
        {"kind": "PodList", "metadata": {"resourceVersion": "42", "continue": "next"}, "items": list(items)} | more
    )


def test_a_pod_is_read() -> None:
    pod = decode_pod(raw(a_pod(status={"phase": "Running"})))
    assert (pod.key, pod.spec.node_name, pod.status.phase) == ("default/web-0", "n1", "Running")


def test_unknown_fields_are_ignored() -> None:
    assert decode_node(raw({"metadata": {"name": "n1", "color": "red"}, "future": {"a": [1]}})) == Node(
        metadata=decode_node(raw({"metadata": {"name": "n1"}})).metadata
    )


def test_nulls_mean_absent_as_go_writes_them() -> None:
    nulls = a_pod(status=None)
    nulls["spec"] |= {
        "tolerations": None,
        "nodeSelector": None,
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": None}}},
    }
    nulls["metadata"] = META | {"labels": None}
    pod = decode_pod(raw(nulls))
    assert (pod.spec.tolerations, pod.spec.node_selector, pod.metadata.labels, pod.status.phase) == ([], {}, {}, "")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param(
            a_pod(spec={"containers": [{"name": "a"}, {"name": 5}]}),
            "Pod default/web-0: spec.containers[1].name: Expected `str`, got `int`",
            id="a wrong type",
        ),
        pytest.param(
            a_pod(spec={"priority": 2**31}),
            "Pod default/web-0: spec.priority: Expected `int` <= 2147483647",
            id="a number beyond its size",
        ),
        pytest.param(
            a_pod(spec={"priority": 10**30}),
            "Pod default/web-0: spec.priority: Expected `int` <= 2147483647",
            id="far beyond",
        ),
        pytest.param(a_pod(metadata={"namespace": "default"}), "Pod default/: metadata.name: missing", id="no name"),
        pytest.param(a_pod(metadata={"name": "x"}), "Pod x: metadata.namespace: missing", id="no namespace"),
        pytest.param(
            a_pod(metadata={"name": "x", "namespace": None}),
            "Pod x: metadata.namespace: missing",
            id="a null namespace",
        ),
        pytest.param({"kind": "Status", "metadata": {}, "code": 404}, "Pod: metadata.name: missing", id="an error"),
        pytest.param([], "Pod: Expected `object`, got `array`", id="no object"),
        pytest.param(None, "Pod: Expected `object`, got `null`", id="null"),
    ],
)
def test_what_is_wrong_is_named(body: Any, message: str) -> None:
    with pytest.raises(Malformed) as raised:
        decode_pod(raw(body))
    assert str(raised.value) == message


@pytest.mark.parametrize(
    "body", [b"", b"{", b"\xff", b'{"metadata":{"name":"\xff"}}', b"[" * 10**5, b"NaN", b'{"a":' * 10**5]
)
def test_what_is_no_json_is_malformed(body: bytes) -> None:
    with pytest.raises(Malformed):
        decode_pod(body)
    with pytest.raises(Malformed):
        decode_list(body, Pod)


def test_a_node_needs_no_namespace() -> None:
    assert decode_node(raw({"metadata": {"name": "n1"}})).metadata.name == "n1"


def test_a_list() -> None:
    page = decode_list(a_list(a_pod(), a_pod()), Pod)
    assert [pod.key for pod in page.items] == ["default/web-0", "default/web-0"]
    assert (page.resource_version, page.more, page.unreadable) == ("42", "next", ())


@pytest.mark.parametrize("items", [[], None])
def test_an_empty_list_may_be_null(items: Any) -> None:
    assert decode_list(raw({"kind": "PodList", "metadata": {"resourceVersion": "1"}, "items": items}), Pod).items == []


@pytest.mark.parametrize(
    "body", [{"kind": "Status", "items": []}, {"kind": "PodList"}, {"kind": "Status", "code": 500}, {}]
)
def test_an_error_is_not_an_empty_list(body: Json) -> None:
    with pytest.raises(Malformed, match=r"^list of Pod: expected a list, got "):
        decode_list(raw(body), Pod)


def test_a_bad_item_does_not_spoil_the_others() -> None:
    bad = a_pod(status={"phase": "Running"}) | {"spec": {"nodeName": "n9", "containers": 5}}
    page = decode_list(a_list(a_pod(), bad, a_pod(spec={"tolerations": None}), 17, a_pod()), Pod)
    assert len(page.items) == 3
    assert (page.resource_version, page.more) == ("42", "next")
    assert page.unreadable[0] == Unreadable(
        kind="Pod",
        namespace="default",
        name="web-0",
        uid="u-1",
        node="n9",
        phase="Running",
        resource_version="7",
        field="spec.containers",
        problem="Expected `array`, got `int`",
    )
    assert str(page.unreadable[0].error) == "Pod default/web-0: spec.containers: Expected `array`, got `int`"
    assert page.unreadable[1] == Unreadable(kind="Pod", problem="Expected `object`, got `int`")


def test_an_item_without_a_name_does_not_spoil_the_others_either() -> None:
    page = decode_list(a_list(a_pod(metadata={"uid": "u-2"}), a_pod()), Pod)
    assert len(page.items) == 1
    assert (page.unreadable[0].uid, page.unreadable[0].node, page.unreadable[0].field) == ("u-2", "n1", "metadata.name")


def test_a_stream_goes_on() -> None:
    assert isinstance(read_object(raw(a_pod()), Pod), Pod)
    assert isinstance(read_object(b"?", Pod), Unreadable)


# --- what the API server stores and no rule reads -----------------------------------------------------------------


def nested(levels: int) -> bytes:
    return b'{"f:a":' * levels + b"{}" + b"}" * levels


def with_fields(fields: bytes, **parts: Any) -> bytes:
    """A pod as a client may write it: `fieldsV1` is stored as it comes."""
    meta = META | {"annotations": {"nodeName": "n7"}, "managedFields": [{"fieldsV1": "HERE"}]}
    return raw(a_pod(metadata=meta) | parts).replace(b'"HERE"', fields)


UNREAD = [
    pytest.param(nested(990), id="990 levels"),
    pytest.param(nested(1_500), id="1,500 levels"),
    pytest.param(nested(10_000), id="10,000 levels, the most that Go reads"),
    pytest.param(b"[" * 200_000 + b"]" * 200_000, id="200,000 levels"),
    pytest.param(b'{"f:\\"[{":' + nested(1_500) + b"}", id="brackets and quotes in a deep key"),
    pytest.param(b'{"f:\xff":{}}', id="a key that is no UTF-8"),
    pytest.param(b'{"f:\\ud800":{}}', id="half a surrogate pair"),
    pytest.param(b"1e999", id="a number beyond floats"),
    pytest.param(b"NaN", id="no number"),
]


@pytest.mark.parametrize("nulls", [{}, {"status": None}], ids=["without nulls", "with nulls"])
@pytest.mark.parametrize("fields", UNREAD)
def test_nothing_fails_because_of_a_field_that_is_not_read(fields: bytes, nulls: Json) -> None:
    body, other = with_fields(fields, **nulls), raw(a_pod())
    page = b'{"kind":"PodList","metadata":{"resourceVersion":"5"},"items":[%s,%s,%s]}' % (other, body, other)
    listing = decode_list(page, Pod)
    assert listing.unreadable == ()
    assert listing.resource_version == "5"
    assert [(pod.key, pod.spec.node_name) for pod in listing.items] == [("default/web-0", "n1")] * 3
    assert decode_pod(body) == listing.items[1]
    assert listing.items[1].spec.containers == decode_pod(other).spec.containers
    (event,) = decode_watch_lines([b'{"object":%s,"type":"ADDED"}' % body], Pod).changes
    assert (event.type, event.object) == ("ADDED", listing.items[1])
    assert from_json(body, NameOnly).metadata.name == "web-0"


@pytest.mark.parametrize("kind", [KINDS[name].type for name in KINDS], ids=list(KINDS))
def test_one_deep_object_of_any_kind_is_read_as_any_other(kind: Any) -> None:
    body = b'{"metadata":{"name":"a","namespace":"b","managedFields":%s}}' % nested(1_500)
    page = decode_list(b'{"kind":"List","metadata":{},"items":[%s]}' % body, kind)
    assert [item.metadata.name for item in page.items] == ["a"]


@pytest.mark.parametrize(
    ("body", "identity"),
    [
        pytest.param(
            b'{"metadata":{"annotations":{"nodeName":"n7","uid":"x"},"name":"p","namespace":"ns"},"spec":{"priority":"b":}}',
            ("ns", "p", "", "", ""),
            id="an annotation is called nodeName",
        ),
        pytest.param(
            b'{"spec":{"x":{"nodeName":"n7"},"containers":[{"nodeName":"n8"}],"nodeName":"n1","priority":"b":},'
            b'"metadata":{"ownerReferences":[{"name":"o","uid":"ou"}],"name":"p","namespace":"ns","uid":"u"}}',
            ("ns", "p", "u", "n1", ""),
            id="owners and deeper parts come first",
        ),
        pytest.param(
            b'{"metadata":{"name":"p","namespace":"ns"},"spec":{"nodeName":"n1","priority":1:},"status":{"phase":"Failed"}}',
            ("ns", "p", "", "n1", "Failed"),
            id="a pod that has ended",
        ),
        pytest.param(
            b'{"x":{"metadata":{"name":"p"},"spec":{"nodeName":"n7"}},"a":"b":}',
            ("", "", "", "", ""),
            id="an object within",
        ),
        pytest.param(
            b'{"metadata":{"name":"p","namespace":"\\"},\\"spec\\":{\\"nodeName\\":\\"n7\\"}","uid":5},"a":"b":}',
            ('"},"spec":{"nodeName":"n7"}', "p", "", "", ""),
            id="a text that looks like an object",
        ),
    ],
)
def test_an_identity_is_taken_from_its_exact_place_only(body: bytes, identity: tuple[str, ...]) -> None:
    found = read_object(body, Pod)
    assert isinstance(found, Unreadable)
    assert (found.namespace, found.name, found.uid, found.node, found.phase) == identity


def test_of_a_list_that_is_no_json_the_items_that_are_arrive() -> None:
    good = raw(a_pod())
    bad = b'{"metadata":{"name":"p","namespace":"ns"},"spec":{"nodeName":"n1","priority":NaN}}'
    page = decode_list(b'{"items":[%s,%s,%s],"metadata":{"resourceVersion":"5"}}' % (good, bad, good), Pod)
    assert (len(page.items), page.resource_version) == (2, "5")
    assert [(lost.subject, lost.node, lost.field) for lost in page.unreadable] == [("Pod ns/p", "n1", "spec.priority")]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"items":[{},NaN', id="cut off"),
        pytest.param(b'{"items":[{},NaN]', id="cut off behind its items"),
        pytest.param(b'{"items":[{},NaN]}{}', id="two of them"),
        pytest.param(b'{"items":NaN}', id="no items"),
        pytest.param(b'{"items":{"a":NaN}}', id="an object for items"),
        pytest.param(b'{"metadata":{"continue":NaN},"items":[]}', id="a place to go on that is none"),
        pytest.param(b'{"kind":"Status","items":[NaN]}', id="an error"),
    ],
)
def test_what_is_no_list_is_never_taken_for_a_short_one(body: bytes) -> None:
    with pytest.raises(Malformed, match=r"^list of Pod: "):
        decode_list(body, Pod)


# What a kube-apiserver 1.37 stores for a pod that a client makes, as it came back from one: what it has turned into its
# own words (quantities, surrogates, broken UTF-8), and what it passes on as it is.
AMOUNTS = [
    ("1500m", 2), ("1m", 1), ("1e-3", 1), ("0", None), ("1e3", 1000), ("1E", 10**18), ("12E", 2**63 - 1),
    ("1e30", 2**63 - 1), ("999999999999999999999", 2**63 - 1), ("9223372036854775807", 2**63 - 1),
    ("9223372036854775807m", 9223372036854776), ("1825361100800m", 1825361101),
]  # fmt: skip


@pytest.mark.parametrize(("stored", "bytes_"), [pytest.param(*row, id=row[0]) for row in AMOUNTS])
def test_every_amount_that_an_api_server_stores_is_counted(stored: str, bytes_: int | None) -> None:
    pod = decode_pod(raw(a_pod(spec={"containers": [{"resources": {"requests": {"memory": stored}}}]})))
    assert dict(footprint(pod).amounts).get("memory") == bytes_


ODD: list[tuple[str, Json]] = [
    ("no spec, no status", {"spec": {}, "status": {}}),
    ("null lists and maps", {"spec": {"containers": None, "volumes": None, "nodeSelector": None, "overhead": None}}),
    ("nulls within a container", {"spec": {"containers": [{"ports": None, "resources": None, "env": None}]}}),
    ("null metadata", {"metadata": META | {"annotations": None, "ownerReferences": None, "creationTimestamp": None}}),
    ("odd texts", {"metadata": META | {"annotations": {"\ufffd": "\0\ufffd\u2028", "": "\x7f😀"}}}),
    ("unknown policies", {"spec": {"preemptionPolicy": "Later", "restartPolicy": "?", "schedulerName": ""}}),
    ("an unknown phase", {"status": {"phase": "Dreaming", "conditions": [{"type": "X", "status": "Maybe"}]}}),
    ("the largest numbers", {"spec": {"priority": 2**31 - 1, "activeDeadlineSeconds": 2**63 - 1}}),
    ("the smallest numbers", {"spec": {"priority": -(2**31), "activeDeadlineSeconds": -(2**63)}}),
    ("a port by its name", {"spec": {"containers": [{"livenessProbe": {"httpGet": {"port": "web"}}}]}}),
    ("a long toleration", {"spec": {"tolerations": [{"tolerationSeconds": 2**63 - 1}]}}),
    ("volumes of other kinds", {"spec": {"volumes": [{"emptyDir": {}}, {"nfs": {"server": "s"}}, {"azureFile": {}}]}}),
    ("fields of a later version", {"spec": {"future": [[[{}]]], "containers": [{"future": 1e300}]}, "later": None}),
]  # fmt: skip


@pytest.mark.parametrize("parts", [pytest.param(parts, id=name) for name, parts in ODD])
def test_every_pod_that_an_api_server_stores_is_read(parts: Json) -> None:
    found = read_object(raw(a_pod(**parts)), Pod)
    assert isinstance(found, Pod)
    footprint(found)


def test_what_could_be_decoded_but_not_used_has_an_identity_too() -> None:
    lost = as_unreadable(decode_pod(raw(a_pod())), Malformed("is not a quantity", field="spec.overhead[cpu]"))
    assert (lost.subject, lost.node, lost.uid) == ("Pod default/web-0", "n1", "u-1")
    assert str(lost.error) == "Pod default/web-0: spec.overhead[cpu]: is not a quantity"


def test_what_is_written_can_be_read_again() -> None:
    pod = decode_pod(raw(a_pod(spec={"nodeName": "n1", "tolerations": [{"key": "a"}], "priority": -5})))
    assert decode_pod(encode(pod)) == pod
    assert json.loads(encode(pod))["spec"] == {"nodeName": "n1", "priority": -5, "tolerations": [{"key": "a"}]}


def test_plain_data_may_have_nulls() -> None:
    assert from_data({"key": "a", "value": None}, Toleration) == Toleration(key="a")
    with pytest.raises(Malformed, match=r"^value: Expected `str`, got `int`$"):
        from_data({"value": 1}, Toleration)
