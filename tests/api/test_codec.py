"""From bytes to objects: nulls forgiven, the rest named, and one bad object never spoils the others."""

import json
from typing import Any

import pytest

from kubenexus.api.codec import (
    Unreadable,
    decode_list,
    decode_node,
    decode_pod,
    encode,
    from_data,
    read_object,
    unreadable,
)
from kubenexus.api.core import Node, Pod, Toleration
from kubenexus.base.errors import Malformed

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


def test_what_could_be_decoded_but_not_used_has_an_identity_too() -> None:
    lost = unreadable(decode_pod(raw(a_pod())), Malformed("is not a quantity", field="spec.overhead[cpu]"))
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
