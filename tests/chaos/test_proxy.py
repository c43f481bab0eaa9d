"""The proxy does to a request what its plan says, and nothing else; each fault is seen from both ends."""

import http.client
import json
import socketserver
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from itertools import pairwise

import pytest

from tests.chaos.faults import REQUEST_FAULTS, WATCH_FAULTS, Plan
from tests.chaos.proxy import Proxy
from tests.chaos.request_log import Asked

BINDING = "/api/v1/namespaces/ns/pods/web/binding"
BODY = json.dumps({"metadata": {"name": "web", "uid": "u"}, "target": {"name": "n"}})
WATCH = "/api/v1/pods?watch=1"
LINES = [
    json.dumps({"type": "MODIFIED", "object": {"metadata": {"resourceVersion": str(number)}}}).encode() + b"\n"
    for number in range(1, 31)
]


class Server(socketserver.ThreadingTCPServer):
    """Answers every bind, and every watch with thirty lines and its end."""

    daemon_threads, allow_reuse_address = True, True

    def __init__(self) -> None:
        self.asked: list[str] = []
        super().__init__(("127.0.0.1", 0), Handler)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.asked.append(self.path)
        self.send_response(201)
        self.send_header("Content-Length", "9")
        self.end_headers()
        self.wfile.write(b'{"a": 12}')

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for line in LINES:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, format: str, *args: object) -> None:
        """Nobody reads it."""


@contextmanager
def between(rates: Mapping[str, Mapping[str, float]], seed: int = 1) -> Iterator[tuple[Proxy, int, Server]]:
    """A proxy with this plan before a server, and the port of its door."""
    server = Server()
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    proxy = Proxy(f"http://127.0.0.1:{server.server_address[1]}", None, Plan(seed, rates))
    proxy.start()
    try:
        yield proxy, proxy.open("r0.1"), server
    finally:
        proxy.close()
        server.shutdown()
        server.server_close()


def ask(port: int, method: str = "POST", path: str = BINDING, body: str | None = BODY) -> tuple[int, bytes]:
    """The code, and as much of the body as came; 0 when nobody answered."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request(method, path, body)
        answer = connection.getresponse()
        try:
            return answer.status, answer.read()
        except http.client.IncompleteRead as cut:
            return answer.status, b"cut:" + cut.partial
    except (http.client.HTTPException, OSError):
        return 0, b""
    finally:
        connection.close()


# What the scheduler hears, and how often the server was asked.
HEARD = {
    "delay": (201, b'{"a": 12}', 1),
    "drop": (0, b"", 0),
    "deaf": (0, b"", 1),
    "429": (429, None, 0),
    "500": (500, None, 0),
    "500-done": (500, None, 1),
    "409": (409, None, 0),
    "410": (410, None, 0),
    "401": (401, None, 0),
}


@pytest.mark.parametrize("kind", sorted(REQUEST_FAULTS.keys() - {"cut"}))
def test_what_becomes_of_a_request(kind: str) -> None:
    with between({"bind": {kind: 1.0}}) as (proxy, port, server):
        code, body = ask(port)
        expected, said, asked = HEARD[kind]
        assert (code, len(server.asked)) == (expected, asked)
        assert body == said if said is not None else json.loads(body)["code"] == code
        assert proxy.journal.struck == {kind: 1}
        (bind,) = proxy.journal.binds
        assert (bind.pod, bind.uid, bind.node, bind.code) == ("ns/web", "u", "n", expected)


def test_half_an_answer() -> None:
    with between({"bind": {"cut": 1.0}}) as (_, port, server):
        code, body = ask(port)
        assert len(server.asked) == 1
        assert (code, body) in ((0, b""), (201, b"cut:"), (201, body[:11]))
        assert body != b'{"a": 12}'


def watched(body: bytes) -> list[int]:
    """The numbers of the whole lines that came; 410 for an error."""
    lines = [json.loads(line) for line in body.removeprefix(b"cut:").split(b"\n") if line.endswith(b"}")]
    return [int(line["object"].get("code") or line["object"]["metadata"]["resourceVersion"]) for line in lines]


@pytest.mark.parametrize("kind", ["watch-cut", "watch-gone", "watch-replay", "watch-slow"])
def test_what_becomes_of_a_watch(kind: str) -> None:
    with between({"watch pods": {kind: 1.0}}) as (proxy, port, _):
        code, body = ask(port, "GET", WATCH, None)
        assert code == 200
        seen, whole = watched(body), list(range(1, 31))
        assert proxy.journal.struck.keys() == {kind}
        if kind == "watch-cut":
            assert body.startswith(b"cut:")
            assert seen == whole[: len(seen)] != whole
        elif kind == "watch-gone":
            assert seen == [*whole[: len(seen) - 1], 410]
        elif kind == "watch-replay":
            steps = [after - before for before, after in pairwise(seen)]
            assert [step for step in steps if step != 1 and step > 0] == [], "in order, and up to the present"
            assert sum(step <= 0 for step in steps) == proxy.journal.struck[kind]
            assert (seen[0], seen[-1], set(seen)) == (1, 30, set(whole))
        else:
            assert seen == whole


def test_a_frozen_watch_says_all_when_it_is_calm_again() -> None:
    with between({"watch pods": {"watch-freeze": 1.0}}) as (proxy, port, _):
        heard = threading.Event()
        bodies: list[bytes] = []

        def listen() -> None:
            bodies.append(ask(port, "GET", WATCH, None)[1])
            heard.set()

        threading.Thread(target=listen, daemon=True).start()
        while not proxy.journal.struck:
            assert not heard.wait(0.001), "it is frozen, not ended"
        proxy.calm()
        assert heard.wait(10)
        assert watched(bodies[0]) == list(range(1, 31))
        assert proxy.journal.knew("r0.1", proxy.clock.now()) == 30


def test_a_standby_that_is_held_back_hears_the_rest_when_it_is_calm_again() -> None:
    with between({"watch pods": {"watch-freeze": 1.0}}) as (proxy, port, _):
        heard, bodies = threading.Event(), list[bytes]()

        def listen() -> None:
            bodies.append(ask(port, "GET", WATCH, None)[1])
            heard.set()

        threading.Thread(target=listen, daemon=True).start()
        while not proxy.journal.struck:
            assert not heard.wait(0.001)
        proxy.hold_back("r0.1")
        assert not any(watching.held for watching in proxy.watches), "this one leads"
        proxy.hold_back("r1.1")
        assert [watching.held for watching in proxy.watches] == [True]
        proxy.calm()
        assert heard.wait(10)
        assert watched(bodies[0]) == list(range(1, 31))


@pytest.mark.parametrize("kind", sorted(kind for kind in WATCH_FAULTS if kind[-3:].isdigit()))
def test_a_watch_that_is_refused(kind: str) -> None:
    with between({"watch pods": {kind: 1.0}}) as (_, port, server):
        assert ask(port, "GET", WATCH, None)[0] == int(kind[-3:])
        assert server.asked == []


def test_a_calm_proxy_only_passes_on() -> None:
    with between({"bind": {"drop": 1.0}}) as (proxy, port, server):
        proxy.calm()
        while not proxy.calmed.is_set():
            pass
        assert ask(port) == (201, b'{"a": 12}')
        assert len(server.asked) == 1


def test_somebody_strikes_at_the_kth_bind_before_it_is_passed_on() -> None:
    with between({}) as (proxy, port, server):
        struck: list[tuple[str, int]] = []

        def strike(asked: Asked) -> None:
            struck.append((asked.who, len(server.asked)))

        proxy.strike(3, strike)
        for _ in range(5):
            assert ask(port)[0] == 201
        assert struck == [("r0.1", 2)]
        assert proxy.binds == 5


def test_a_process_whose_renewals_do_not_come_through() -> None:
    lease = "/apis/coordination.k8s.io/v1/namespaces/ns/leases/kubenexus-scheduler"
    body = json.dumps({"spec": {"holderIdentity": "me"}})
    with between({}) as (proxy, port, _):
        assert ask(port, "POST", lease, body)[0] == 201
        assert proxy.leader == "r0.1"
        proxy.deafen("r0.1")
        assert ask(port, "POST", lease, body) == (0, b"")
        assert ask(port)[0] == 201


@pytest.mark.parametrize(
    ("how", "code", "body"),
    [
        pytest.param("500", 500, b"InternalError", id="refused"),
        pytest.param("garbage", 200, b'"items": [{"metadata": 7', id="not JSON"),
    ],
)
def test_a_kind_that_is_broken_cannot_be_read_and_all_others_can(how: str, code: int, body: bytes) -> None:
    with between({}) as (proxy, port, server):
        proxy.break_kind("/apis/policy/", how)
        proxy.calm()
        found, said = ask(port, "GET", "/apis/policy/v1/poddisruptionbudgets?limit=500", None)
        assert found == code
        assert body in said
        assert server.asked == []
        assert ask(port)[0] == 201
        assert ask(port, "POST", "/apis/policy/v1/x", BODY)[0] == 201, "only reading is broken"
        assert proxy.journal.struck == {f"broken kind: {how}": 1}


def test_a_kind_that_hangs_gives_no_answer_until_the_scheduler_hangs_up() -> None:
    with between({}) as (proxy, port, server):
        proxy.break_kind("/apis/policy/", "hang")
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=0.05)
        connection.request("GET", "/apis/policy/v1/poddisruptionbudgets")
        with pytest.raises(TimeoutError):
            connection.getresponse()
        connection.close()
        assert server.asked == []
