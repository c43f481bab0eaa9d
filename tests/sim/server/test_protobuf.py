"""Bodies in protobuf, written here by hand: a field is its number, its wire type and its bytes."""

import pytest

from kubenexus.base.errors import Malformed
from kubenexus.sim.apiserver import protobuf
from kubenexus.sim.apiserver.http_types import Request
from tests.sim.server.server_fixture import PODS, ServerFixture


def field(number: int, value: bytes | str | int) -> bytes:
    if isinstance(value, int):
        return bytes([number << 3, value])
    data = value.encode() if isinstance(value, str) else value
    assert len(data) < 128
    return bytes([number << 3 | 2, len(data)]) + data


def envelope(version: str, kind: str, raw: bytes) -> bytes:
    return b"k8s\x00" + field(1, field(1, version) + field(2, kind)) + field(2, raw)


META = field(1, "a") + field(8, b"") + field(11, field(1, "k") + field(2, "v"))  # name, no time, a label


def test_an_object_is_read_as_its_json() -> None:
    container = field(1, "c") + field(2, "i") + field(6, field(1, "") + field(2, 0) + field(3, 80))
    volume = field(1, "v") + field(2, field(1, field(1, "/x")))  # the source is embedded
    spec = field(1, volume) + field(2, container) + field(11, 0)  # hostNetwork: no pointer, says nothing
    item = protobuf.decode(envelope("v1", "Pod", field(1, META) + field(2, spec)))
    assert item == {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": "a", "labels": {"k": "v"}},
        "spec": {
            "volumes": [{"name": "v", "hostPath": {"path": "/x"}}],
            "containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80}]}],
        },
    }


def test_zero_is_something_where_go_has_a_pointer() -> None:
    item = protobuf.decode(envelope("apps/v1", "Deployment", field(2, field(1, 0) + field(5, 0))))
    assert item["spec"] == {"replicas": 0}  # minReadySeconds is none


@pytest.mark.parametrize("body", [b"{}", b"k8s\x00\x0a\x7f", envelope("v1", "Nothing", b""), b"k8s\x00\xff\xff"])
def test_what_cannot_be_read_is_refused(body: bytes) -> None:
    with pytest.raises(Malformed):
        protobuf.decode(body)


def test_the_server_takes_it() -> None:
    server = ServerFixture()
    container = field(1, "c") + field(2, "i")
    body = envelope("v1", "Pod", field(1, META) + field(2, field(2, container)))
    answer = server.server.handle(Request("POST", PODS, body, {"content-type": protobuf.CONTENT}))
    assert answer.code == 201
    answer = server.server.handle(Request("POST", PODS, b"k8s\x00\xff", {"content-type": protobuf.CONTENT}))
    assert answer.code == 400


@pytest.mark.parametrize("version", ["v1", "apps/v1"])
def test_options_of_a_delete_are_read_too(version: str) -> None:
    """`helm uninstall` sends them for the secret of its release."""
    server = ServerFixture()
    pod = envelope("v1", "Pod", field(1, META) + field(2, field(2, field(1, "c") + field(2, "i"))))
    assert server.server.handle(Request("POST", PODS, pod, {"content-type": protobuf.CONTENT})).code == 201

    def delete(body: bytes) -> int:
        return server.server.handle(Request("DELETE", f"{PODS}/a", body, {"content-type": protobuf.CONTENT})).code

    assert delete(b"k8s\x00\xff") == 400
    assert delete(envelope(version, "DeleteOptions", field(2, field(1, "other-uid")))) == 409
    assert delete(envelope(version, "DeleteOptions", field(1, 0) + field(4, "Background"))) == 200
    assert server.server.handle(Request("GET", f"{PODS}/a", b"", {})).code == 404
