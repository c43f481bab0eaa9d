"""What agents do follows from what the server says, at the times a kubelet would do it."""

import json
from typing import Any

import msgspec
import pytest

from kubenexus.api.core import Taint
from kubenexus.api.meta import ObjectMeta
from kubenexus.base.errors import KubeNexusError
from kubenexus.client.calls import ApiError, Unreachable
from kubenexus.sim.delaying_queue import WorkItem
from kubenexus.sim.kubelets import annotations
from kubenexus.sim.kubelets.agents import Agents, AgentSettings
from kubenexus.sim.kubelets.pod_status import KubeletRejection
from kubenexus.sim.kubelets.types import (
    Condition,
    Container,
    Node,
    NodeAddress,
    NodeSpec,
    NodeStatus,
    Pod,
    PodSpec,
    PodStatus,
)

NOW = 1_800_000_000.0  # 2027-01-15T08:00:00Z
NOT_READY = Taint(key="node.kubernetes.io/not-ready", effect="NoSchedule")
OURS = Taint(key="gpu", value="yes", effect="NoSchedule")


def a_node(name: str = "n1", *, taints: list[Taint] | None = None, ready: str = "True", **meta: Any) -> Node:
    return Node(
        metadata=ObjectMeta(
            name=name, uid=f"uid-{name}", resource_version="7", labels={annotations.AGENT: "true"}, **meta
        ),
        spec=NodeSpec(taints=taints or []),
        status=NodeStatus(
            conditions=[Condition(type="Ready", status=ready)],
            addresses=[NodeAddress(type="InternalIP", address="10.0.0.1")],
        ),
    )


def a_pod(name: str = "web", *, node: str = "n1", phase: str = "Pending", start: str = "", **meta: Any) -> Pod:
    return Pod(
        metadata=ObjectMeta(name=name, namespace="shop", uid=f"uid-{name}", **meta),
        spec=PodSpec(
            node_name=node,
            containers=[Container(name="main", image="app:1")],
            init_containers=[Container(name="init", image="init:1"), Container(name="mesh", restart_policy="Always")],
        ),
        status=PodStatus(phase=phase, start_time=start),
    )


class Desk:
    """Agents with a node of theirs, and what they would send."""

    def __init__(self, settings: AgentSettings | None = None, **options: Any) -> None:
        self.agents = Agents(settings, **options)
        self.agents.node_seen(a_node(), NOW)

    def take(self, now: float, *whats: str) -> list[WorkItem]:
        """What is due, all of it or only this; the rest is done in silence."""
        due = self.agents.work_queue.due(now, 100)
        wanted = [item for item in due if not whats or item.what in whats]
        for item in due:
            if item not in wanted:
                self.agents.finished(item, now)
        return wanted

    def say(self, now: float, *whats: str, error: KubeNexusError | None = None) -> list[tuple[str, Any]]:
        """The calls that are due, as (request, body); each is answered at once."""
        said = []
        for item in self.take(now, *whats):
            call = self.agents.call(item, now)
            if call is not None:
                said.append((str(call), json.loads(call.body)))
            self.agents.finished(item, now, error)
        return said


PODS = ("run", "succeed", "delete")


def test_a_bound_pod_runs() -> None:
    desk = Desk()
    desk.agents.pod_seen(a_pod(), NOW)
    ((request, body),) = desk.say(NOW, *PODS)
    assert request == "PATCH /api/v1/namespaces/shop/pods/web/status"
    assert body["metadata"] == {"uid": "uid-web"}
    status = body["status"]
    assert (status["phase"], status["startTime"]) == ("Running", "2027-01-15T08:00:00Z")
    assert (status["podIP"], status["hostIP"]) == ("10.128.0.1", "10.0.0.1")
    assert {each["type"]: each["status"] for each in status["conditions"]} == dict.fromkeys(
        ["PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready"], "True"
    )
    assert [(each["name"], each["ready"], list(each["state"])) for each in status["containerStatuses"]] == [
        ("main", True, ["running"])
    ]
    assert [list(each["state"]) for each in status["initContainerStatuses"]] == [["terminated"], ["running"]]


def test_the_echo_of_an_older_state_does_not_start_it_twice() -> None:
    desk = Desk()
    desk.agents.pod_seen(a_pod(), NOW)
    (doing,) = desk.take(NOW, *PODS)
    desk.agents.pod_seen(a_pod(labels={"new": "label"}), NOW)
    desk.agents.finished(doing, NOW)
    assert desk.say(NOW + 1, *PODS) == []


def test_a_pod_that_says_how_long_it_runs_succeeds_then() -> None:
    desk = Desk()
    desk.agents.pod_seen(
        a_pod(phase="Running", start="2027-01-15T07:59:50Z", annotations={annotations.RUN_SECONDS: "15"}), NOW
    )
    assert desk.say(NOW + 4.9, *PODS) == []
    ((_, body),) = desk.say(NOW + 5, *PODS)
    assert body["status"]["phase"] == "Succeeded"
    assert [each for each in body["status"]["conditions"] if each["type"] == "Ready"] == [
        {"type": "Ready", "status": "False", "reason": "PodCompleted", "lastTransitionTime": "2027-01-15T08:00:05Z"}
    ]
    (container,) = body["status"]["containerStatuses"]
    assert container["state"]["terminated"]["startedAt"] == "2027-01-15T07:59:50Z"


@pytest.mark.parametrize(
    ("annotation", "default", "succeeds"),
    [
        pytest.param(None, None, False, id="nothing said: it runs until it is deleted"),
        pytest.param(None, 5.0, True, id="nothing said, but the agents were told"),
        pytest.param("soon", None, False, id="a number that is none is as nothing said"),
        pytest.param("-1", None, True, id="less than nothing is nothing"),
    ],
)
def test_how_long_a_pod_runs(annotation: str | None, default: float | None, succeeds: bool) -> None:
    desk = Desk(AgentSettings(run=default))
    said = {} if annotation is None else {annotations.RUN_SECONDS: annotation}
    desk.agents.pod_seen(a_pod(phase="Running", start="2027-01-15T08:00:00Z", annotations=said), NOW)
    assert bool(desk.say(NOW + 10, *PODS)) == succeeds


@pytest.mark.parametrize(
    ("settings", "gone_at"),
    [
        pytest.param(AgentSettings(), NOW + 30, id="after the whole grace period"),
        pytest.param(AgentSettings(stop=2), NOW + 2, id="or sooner, if its containers stop sooner"),
        pytest.param(AgentSettings(stop=99), NOW + 30, id="but never later"),
    ],
)
def test_a_deletion_is_finished(settings: AgentSettings, gone_at: float) -> None:
    desk = Desk(settings)
    going = a_pod(
        phase="Running", deletion_timestamp="2027-01-15T08:00:30Z", annotations={annotations.RUN_SECONDS: "1"}
    )
    desk.agents.pod_seen(going, NOW)
    assert desk.say(gone_at - 0.1, *PODS) == [], "and it does not succeed meanwhile: nobody would delete it then"
    ((request, body),) = desk.say(gone_at, *PODS)
    assert request == "DELETE /api/v1/namespaces/shop/pods/web"
    assert (body["gracePeriodSeconds"], body["preconditions"]) == (0, {"uid": "uid-web"})


def test_a_grace_period_that_is_shortened_counts() -> None:
    desk = Desk()
    desk.agents.pod_seen(a_pod(phase="Running", deletion_timestamp="2027-01-15T08:00:30Z"), NOW)
    desk.agents.pod_seen(a_pod(phase="Running", deletion_timestamp="2027-01-15T08:00:03Z"), NOW + 1)
    assert len(desk.say(NOW + 3, *PODS)) == 1


def test_a_pod_is_refused_by_a_hook_or_by_an_annotation() -> None:
    hooked = Desk(refuse=lambda pod, node: KubeletRejection("OutOfcpu", f"{pod} not on {node.metadata.name}"))
    hooked.agents.pod_seen(a_pod(), NOW)
    ((_, body),) = hooked.say(NOW, *PODS)
    assert body["status"] == {
        "phase": "Failed",
        "reason": "OutOfcpu",
        "message": "shop/web not on n1",
        "startTime": "2027-01-15T08:00:00Z",
    }
    told = Desk()
    told.agents.node_seen(a_node("full", annotations={annotations.REFUSE: "OutOfmemory"}), NOW)
    told.agents.pod_seen(a_pod(node="full"), NOW)
    ((_, body),) = told.say(NOW, *PODS)
    assert (body["status"]["reason"], body["status"]["message"]) == ("OutOfmemory", "Pod was rejected: OutOfmemory")


def test_pods_of_other_nodes_are_left_alone_until_the_node_is_ours() -> None:
    desk = Desk()
    desk.agents.pod_seen(a_pod(node="n2"), NOW)
    assert desk.say(NOW, *PODS) == []
    desk.agents.node_seen(a_node("n2"), NOW)
    assert len(desk.say(NOW, *PODS)) == 1
    desk.agents.pod_seen(a_pod(node="n2", phase="Running", deletion_timestamp="2027-01-15T08:00:30Z"), NOW)
    desk.agents.node_gone("n2")
    assert desk.say(NOW + 60, *PODS) == [], "a machine that is lost finishes nothing"
    desk.agents.node_seen(a_node("n2"), NOW + 60)
    assert len(desk.say(NOW + 60, *PODS)) == 1


def test_a_node_without_the_label_is_somebody_elses() -> None:
    strange = Node(metadata=ObjectMeta(name="real"))
    assert list(Desk().agents.node_names) == ["n1"]
    for all_nodes, kept in ((False, []), (True, ["real"])):
        agents = Agents(AgentSettings(all_nodes=all_nodes))
        agents.node_seen(strange, NOW)
        assert list(agents.node_names) == kept


def test_a_fresh_node_becomes_ready_and_loses_only_its_taint_of_freshness() -> None:
    desk = Desk()
    desk.agents.node_seen(a_node(taints=[NOT_READY, OURS], ready="False"), NOW)
    ((request, body),) = desk.say(NOW, "ready", "untaint")
    assert request == "PATCH /api/v1/nodes/n1/status"
    assert body["status"]["conditions"][0]["status"] == "True"
    desk.agents.node_seen(a_node(taints=[NOT_READY, OURS]), NOW)
    ((request, body),) = desk.say(NOW, "ready", "untaint")
    assert request == "PATCH /api/v1/nodes/n1"
    assert body == {
        "metadata": {"resourceVersion": "7"},
        "spec": {"taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]},
    }


@pytest.mark.parametrize(
    ("capacity", "allocatable", "said"),
    [
        ({"cpu": "4", "example.com/gpu": "2"}, {"cpu": "4"}, {"example.com/gpu": "2"}),
        ({"cpu": "4"}, {"cpu": "4", "example.com/gpu": "2"}, {"example.com/gpu": None}),
        ({"cpu": "4", "example.com/gpu": "2"}, {"cpu": "3", "example.com/gpu": "2"}, None),
    ],
    ids=["one more", "one less", "nothing new"],
)
def test_an_extended_resource_written_into_the_capacity_is_offered(
    capacity: dict[str, str], allocatable: dict[str, str], said: dict[str, Any] | None
) -> None:
    desk, node = Desk(), a_node()
    status = msgspec.structs.replace(node.status, capacity=capacity, allocatable=allocatable)
    desk.agents.node_seen(msgspec.structs.replace(node, status=status), NOW)
    found = [body["status"]["allocatable"] for _, body in desk.say(NOW, "offer")]
    assert found == ([] if said is None else [said])


def test_heartbeats_go_on_and_make_the_lease_where_there_is_none() -> None:
    desk = Desk(AgentSettings(renew=10))
    first = desk.say(NOW + 10, "renew", error=ApiError(404, "NotFound"))
    assert [request for request, _ in first] == [
        "PATCH /apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1"
    ]
    ((request, lease),) = desk.say(NOW + 10, "lease")
    assert request == "POST /apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
    assert lease["spec"]["holderIdentity"] == "n1"
    assert lease["metadata"]["ownerReferences"][0]["uid"] == "uid-n1"
    assert [len(desk.say(NOW + 10 + 10 * i, "renew")) for i in range(1, 4)] == [1, 1, 1]
    assert len(desk.say(NOW + 300, "heartbeat")) == 1
    desk.agents.node_gone("n1")
    assert desk.agents.work_queue.next_due() is None


def test_without_leases_only_the_status_beats() -> None:
    desk = Desk(AgentSettings(renew=0))
    assert {item.what for item in desk.agents.work_queue.due(NOW + 1000, 10)} == {"heartbeat"}


def test_the_heartbeats_of_many_nodes_are_spread_over_the_period() -> None:
    agents = Agents(AgentSettings(renew=10))
    for number in range(1000):
        agents.node_seen(a_node(f"n{number}"), NOW)
    by_second = [len(agents.work_queue.due(NOW + second + 1, 10_000)) for second in range(10)]
    assert all(90 <= count <= 110 for count in by_second), by_second


@pytest.mark.parametrize(
    ("error", "again_after"),
    [
        pytest.param(Unreachable("no server"), 1.0, id="the server is away"),
        pytest.param(ApiError(503), 1.0, id="the server is in trouble"),
        pytest.param(ApiError(403, "Forbidden"), 30.0, id="a right is missing"),
        pytest.param(ApiError(409, "Conflict"), None, id="somebody was faster: the watch will tell"),
        pytest.param(ApiError(404, "NotFound"), None, id="gone: the watch will tell"),
    ],
)
def test_what_did_not_arrive_is_said_again(error: KubeNexusError, again_after: float | None) -> None:
    desk = Desk()
    desk.agents.pod_seen(a_pod(), NOW)
    assert len(desk.say(NOW, *PODS, error=error)) == 1
    if again_after is None:
        assert desk.say(NOW + 100, *PODS) == []
    else:
        assert desk.say(NOW + again_after - 0.1, *PODS) == []
        assert len(desk.say(NOW + again_after, *PODS)) == 1
