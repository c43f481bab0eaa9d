"""What people read about a pod is what they would read with kube-scheduler."""

import re

from kubenexus.testing.controlplane import ClusterClient, ControlPlane
from tests.e2e.scheduling import Start, a_node, a_pod, condition, events, make_nodes, node_of, placed, pods


def described(plane: ControlPlane, namespace: str, pod: str) -> tuple[list[str], list[str]]:
    """From `kubectl describe pod`: the lines of its conditions, and its events without their age."""
    text = plane.kubectl("describe", "pod", pod, f"--namespace={namespace}")
    conditions = re.search(r"^Conditions:\n((?: .*\n)+)", text, re.MULTILINE)
    told = re.search(r"^Events:\n((?: .*\n)+)", text, re.MULTILINE)
    assert told, text
    lines = [re.split(r"\s{2,}", line.strip()) for line in told[1].splitlines()[2:]]
    return [" ".join(line.split()) for line in (conditions[1] if conditions else "").splitlines()], [
        f"{kind} {reason}: {message}" for kind, reason, _age, _source, message in lines
    ]


def test_a_scheduled_and_a_pending_pod_read_as_with_kube_scheduler(
    scheduler: Start, plane: ControlPlane, cluster: ClusterClient, namespace: str
) -> None:
    make_nodes(cluster, a_node("n1", cpu="2"), a_node("n2", cpu="1", disk="ssd"))
    ours, theirs = scheduler(), plane.start_scheduler()
    for name, mark in (("kubenexus-scheduler", "a"), ("default-scheduler", "b")):
        cluster.create(a_pod(f"fits-{mark}", "100m", name, nodeSelector={"disk": "ssd"}), namespace)
        cluster.create(a_pod(f"waits-{mark}", "8", name, nodeSelector={"disk": "ssd"}), namespace)
    cluster.until(
        pods(namespace),
        lambda seen: len(placed(seen)) == 2 and all(condition(seen, f"waits-{mark}") for mark in "ab"),
        "both schedulers have spoken",
    )
    for program in (ours, theirs):
        program.stop()
    a, b = described(plane, namespace, "fits-a"), described(plane, namespace, "fits-b")
    assert (a[0], [line.replace("fits-a", "fits-b") for line in a[1]]) == b
    a, b = described(plane, namespace, "waits-a"), described(plane, namespace, "waits-b")
    assert a[0] == b[0]
    (said,), (expected,) = a[1], b[1]
    # What kube-scheduler adds is about preemption, which we have not got yet.
    assert expected.startswith(said), (said, expected)
    assert said == (
        "Warning FailedScheduling: 0/2 nodes are available: 1 Insufficient cpu, "
        "1 node(s) didn't match Pod's node affinity/selector."
    )


def test_a_condition_is_what_autoscalers_read_and_is_written_once(
    scheduler: Start, cluster: ClusterClient, namespace: str
) -> None:
    make_nodes(cluster, a_node("n1", cpu="1"))
    cluster.create(a_pod("waits", "2"), namespace)
    cluster.create(a_pod("gated", "2", schedulingGates=[{"name": "example.com/wait"}]), namespace)
    program = scheduler()
    seen = cluster.until(pods(namespace), lambda all: bool(condition(all, "waits")), "it is told why it waits")
    told = condition(seen, "waits")
    assert (told["status"], told["reason"]) == ("False", "Unschedulable")
    assert told["message"] == "0/1 nodes are available: 1 Insufficient cpu."
    assert condition(seen, "gated")["reason"] == "SchedulingGated"
    version = seen["waits"]["metadata"]["resourceVersion"]
    # One like it joins it, and hears of the same refusal; nothing is written where nothing has changed.
    cluster.patch(f"{pods(namespace)}/gated", {"spec": {"schedulingGates": None}})
    cluster.until(
        pods(namespace), lambda all: condition(all, "gated")["reason"] == "Unschedulable", "the gate was opened"
    )
    seen = cluster.objects(pods(namespace))
    assert seen["waits"]["metadata"]["resourceVersion"] == version
    make_nodes(cluster, a_node("n2", cpu="4"))
    seen = cluster.until(pods(namespace), lambda all: len(placed(all)) == 2, "both are bound when a node comes")
    assert node_of(seen, "waits") == node_of(seen, "gated") == "n2"
    told = condition(seen, "waits")
    assert (told["status"], told.get("reason"), told.get("message")) == ("True", None, None)
    program.stop()
    heard = [(each["reason"], each["note"]) for each in events(cluster, namespace, "waits")]
    assert heard[0] == ("FailedScheduling", "0/1 nodes are available: 1 Insufficient cpu.")
    assert heard[-1] == ("Scheduled", f"Successfully assigned {namespace}/waits to n2")
