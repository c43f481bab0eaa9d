"""Pods: defaults, admission, binding, eviction, the end."""

from typing import Any

from tests.contract.api import Api, Said, a_binding, a_budget, a_pod, an_eviction

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"


def what_is_left_out_has_a_meaning(api: Api) -> None:
    spec = api.post("pods", a_pod("a")).ok(201)["spec"]
    expected: dict[str, Any] = {
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "securityContext": {},
        "schedulerName": "default-scheduler",
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
        "priority": 0,
    }
    container = {"imagePullPolicy": "Always", "terminationMessagePath": "/dev/termination-log", "resources": {}}
    assert {key: spec.get(key) for key in expected} == expected
    assert {key: spec["containers"][0].get(key) for key in container} == container
    waits = {each["key"]: each["tolerationSeconds"] for each in spec["tolerations"]}
    assert waits == {NOT_READY: 300, UNREACHABLE: 300}


def quantities_are_canonical_and_requests_follow_limits(api: Api) -> None:
    resources = {"limits": {"cpu": "0.5", "memory": "1024Mi"}, "requests": {"memory": 1000}}
    container = {"name": "c", "image": "i:1", "resources": resources}
    made = api.post("pods", a_pod("a", containers=[container])).ok(201)
    seen = made["spec"]["containers"][0]
    assert seen["resources"] == {
        "limits": {"cpu": "500m", "memory": "1Gi"},
        "requests": {"cpu": "500m", "memory": "1k"},
    }
    assert seen["imagePullPolicy"] == "IfNotPresent"
    assert made["status"] == {"phase": "Pending", "qosClass": "Burstable"}
    wrong = {**container, "resources": {"requests": {"cpu": "x"}}}
    api.post("pods", a_pod("b", containers=[wrong])).refused(400, "BadRequest")


def a_spec_is_checked(api: Api) -> None:
    def refused(field: str, **spec: Any) -> None:
        api.post("pods", a_pod("bad", **spec)).refused(422, "Invalid", field=f"spec.{field}")

    def container(**more: Any) -> list[dict[str, Any]]:
        return [{"name": "c", "image": "i", **more}]

    refused("containers", containers=[])
    refused("restartPolicy", restartPolicy="X")
    refused("containers[0].image", containers=[{"name": "c"}])
    refused("containers[0].name", containers=[{"image": "c"}])
    refused("containers[1].name", containers=[*container(), *container()])
    too_much = {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}
    refused("containers[0].resources.requests", containers=container(resources=too_much))
    device = {"requests": {"nvidia.com/gpu": "1"}}
    refused("containers[0].resources.limits", containers=container(resources=device))
    refused("containers[0].ports[0].containerPort", containers=container(ports=[{"containerPort": 70000}]))
    refused("tolerations[0].operator", tolerations=[{"operator": "Equal"}])
    refused("tolerations[0].effect", tolerations=[{"key": "a", "effect": "X"}])
    refused("topologySpreadConstraints[0].maxSkew", topologySpreadConstraints=[{"topologyKey": "z"}])
    terms: dict[str, Any] = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}
    where = "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
    refused(where, affinity={"nodeAffinity": terms})
    refused("nodeSelector", nodeSelector={"a b": "c"})
    refused("schedulingGates[1]", schedulingGates=[{"name": "x"}, {"name": "x"}])
    refused("nodeName", schedulingGates=[{"name": "x"}], nodeName="n")


def priority_comes_from_a_class(api: Api) -> None:
    name = api.own("high")
    api.post("priorityclasses", {"metadata": {"name": name}, "value": 1000, "preemptionPolicy": "Never"}).ok(201)
    spec = api.post("pods", a_pod("a", priorityClassName=name)).ok(201)["spec"]
    assert (spec["priority"], spec["preemptionPolicy"]) == (1000, "Never")
    spec = api.post("pods", a_pod("b", priorityClassName="system-node-critical")).ok(201)["spec"]
    assert spec["priority"] == 2000001000
    api.post("pods", a_pod("c", priorityClassName="nope")).refused(403, "Forbidden")
    api.post("pods", a_pod("c", priority=5)).refused(403, "Forbidden")
    api.post("pods", a_pod("c", preemptionPolicy="Never")).refused(403, "Forbidden")
    api.delete(f"priorityclasses/{name}").ok()


def a_pod_is_bound_once(api: Api) -> None:
    for name in ("a", "b", "c"):
        api.post("pods", a_pod(name)).ok(201)
    done = api.post("pods/a/binding", a_binding("a", "n1", annotations={"k": "v"})).ok(201)
    assert (done["kind"], done["status"]) == ("Status", "Success")
    bound = api.get("pods/a").ok()
    assert bound["spec"]["nodeName"] == "n1"
    assert bound["metadata"]["annotations"] == {"k": "v"}
    assert bound["metadata"]["generation"] == 1
    conditions = {each["type"]: each["status"] for each in bound["status"]["conditions"]}
    assert conditions == {"PodScheduled": "True"}
    message = 'Operation cannot be fulfilled on pods/binding "a": pod a is already assigned to node "n1"'
    api.post("pods/a/binding", a_binding("a", "n2")).refused(409, "Conflict", message)
    api.post("pods/zz/binding", a_binding("zz", "n1")).refused(404, "NotFound", 'pods "zz" not found')
    api.post("pods/b/binding", a_binding("b", "n1", uid="x")).refused(409, "Conflict")
    api.post("pods/b/binding", a_binding("c", "n1")).refused(400, "BadRequest")
    api.post("pods/b/binding", a_binding("b", "")).refused(500)
    right = api.get("pods/b").ok()["metadata"]["uid"]
    api.post("pods/b/binding", a_binding("b", "n1", uid=right)).ok(201)
    api.post("bindings", a_binding("c", "n1")).ok(201)


def gates_forbid_binding(api: Api) -> None:
    made = api.post("pods", a_pod("a", schedulingGates=[{"name": "x/y"}])).ok(201)
    assert made["status"]["conditions"][0]["reason"] == "SchedulingGated"
    api.post("pods/a/binding", a_binding("a", "n1")).refused(409, "Conflict")
    api.patch("pods/a", {"spec": {"schedulingGates": None}}).ok()
    api.post("pods/a/binding", a_binding("a", "n1")).ok(201)


def a_spec_hardly_changes(api: Api) -> None:
    api.post("pods", a_pod("a")).ok(201)
    api.patch("pods/a", {"spec": {"schedulerName": "x"}}).refused(422, "Invalid", field="spec")
    api.patch("pods/a", {"spec": {"nodeName": "x"}}).refused(422, "Invalid", field="spec")
    image = {"spec": {"containers": [{"name": "c", "image": "other"}]}}
    changed = api.patch("pods/a", image, "strategic").ok()
    assert changed["metadata"]["generation"] == 2
    more = {"spec": {"containers": [{"name": "d", "image": "x"}]}}
    api.patch("pods/a", more, "strategic").refused(422, "Invalid", field="spec.containers")
    api.patch("pods/a", {"spec": {"activeDeadlineSeconds": 60}}).ok()
    for later in (61, None):
        wrong = api.patch("pods/a", {"spec": {"activeDeadlineSeconds": later}})
        wrong.refused(422, "Invalid", field="spec.activeDeadlineSeconds")
    status = api.patch("pods/a", {"status": {"phase": "Running"}}).ok()["status"]
    assert status["phase"] == "Pending"  # the status has a door of its own
    changed = api.patch("pods/a/status", {"status": {"phase": "Running"}, "spec": {"nodeName": "n"}}).ok()
    assert (changed["status"]["phase"], changed["spec"].get("nodeName")) == ("Running", None)


def an_unbound_pod_goes_at_once(api: Api) -> None:
    def act() -> None:
        api.post("pods", a_pod("a")).ok(201)
        api.delete("pods/a").ok()
        api.post("pods", a_pod("z")).ok(201)

    assert api.seen("pods", act, "z") == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]


def a_bound_pod_is_given_time(api: Api) -> None:
    def act() -> None:
        api.post("pods", a_pod("a", nodeName="n1")).ok(201)
        first = api.delete("pods/a").ok()["metadata"]
        assert (first["deletionGracePeriodSeconds"], first["generation"]) == (30, 2)
        again = api.delete("pods/a").ok()["metadata"]
        assert again["resourceVersion"] == first["resourceVersion"]
        api.post("pods/a/binding", a_binding("a", "n1")).refused(409, "Conflict")
        assert api.delete("pods/a", gracePeriodSeconds=5).ok()["metadata"]["deletionGracePeriodSeconds"] == 5
        assert api.delete("pods/a", gracePeriodSeconds=9).ok()["metadata"]["deletionGracePeriodSeconds"] == 5
        api.patch("pods/a", {"metadata": {"labels": {"x": "y"}}}).ok()
        api.delete("pods/a", "gracePeriodSeconds=0").ok()
        api.get("pods/a").refused(404, "NotFound")
        api.post("pods", a_pod("z")).ok(201)

    seen = api.seen("pods", act, "z")
    assert [type for type, _ in seen] == ["ADDED", "MODIFIED", "MODIFIED", "MODIFIED", "MODIFIED", "DELETED"]


def a_pod_that_has_ended_goes_at_once(api: Api) -> None:
    api.post("pods", a_pod("a", nodeName="n1")).ok(201)
    api.patch("pods/a/status", {"status": {"phase": "Succeeded"}}).ok()
    api.delete("pods/a").ok()
    api.get("pods/a").refused(404, "NotFound")


def eviction_asks_the_budget(api: Api) -> None:
    _running(api, "a", "b")
    api.post("poddisruptionbudgets", a_budget("all", minAvailable=2, selector={"matchLabels": {"app": "a"}})).ok(201)
    refused = api.post("pods/a/eviction", an_eviction("a")).refused(429, "TooManyRequests")
    assert refused.json["details"]["causes"][0]["reason"] == "DisruptionBudget"
    _allow(api, 0)
    api.post("pods/a/eviction", an_eviction("a")).refused(429, "TooManyRequests")
    _allow(api, 1)
    api.post("pods/a/eviction", an_eviction("a"), "dryRun=All").ok(201)
    api.post("pods/a/eviction", an_eviction("a")).ok(201)
    status = api.get("poddisruptionbudgets/all").ok()["status"]
    assert status["disruptionsAllowed"] == 0
    assert list(status["disruptedPods"]) == ["a"]
    evicted = api.get("pods/a").ok()
    assert evicted["metadata"]["deletionTimestamp"]
    assert "DisruptionTarget" in {each["type"] for each in evicted["status"]["conditions"]}


def eviction_without_a_budget_deletes(api: Api) -> None:
    _running(api, "a")
    api.post("pods", a_pod("b")).ok(201)
    api.post("pods/zz/eviction", an_eviction("zz")).refused(404, "NotFound", 'pods "zz" not found')
    api.post("pods/a/eviction", an_eviction("b")).refused(400, "BadRequest")
    api.post("pods/a/eviction", an_eviction("a")).ok(201)
    api.post("pods/b/eviction", an_eviction("b")).ok(201)
    assert api.names("pods") == ["a"]


def who_evicts_last_is_written_down(api: Api) -> None:
    """A pod that is leaving already learns why, once."""

    def act() -> None:
        _running(api, "a")
        api.delete("pods/a").ok()
        for _ in range(2):
            api.post("pods/a/eviction", an_eviction("a")).ok(201)
        api.post("pods", a_pod("z")).ok(201)

    assert [type for type, _ in api.seen("pods", act, "z")] == ["ADDED", "MODIFIED", "MODIFIED", "MODIFIED"]


def _running(api: Api, *names: str) -> None:
    ready = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    for name in names:
        api.post("pods", a_pod(name, nodeName="n1")).ok(201)
        api.patch(f"pods/{name}/status", ready, "strategic").ok()


def _allow(api: Api, count: int) -> None:
    healthy = {"observedGeneration": 1, "currentHealthy": 2 + count, "desiredHealthy": 2, "expectedPods": 2}
    api.patch("poddisruptionbudgets/all/status", {"status": {**healthy, "disruptionsAllowed": count}}).ok()


def a_pod_is_resized_and_nothing_else_changes(api: Api) -> None:
    def asking(image: str = "i:1", **requests: str) -> list[dict[str, Any]]:
        return [{"name": "c", "image": image, "resources": {"requests": requests}}]

    def resize(containers: list[dict[str, Any]]) -> Said:
        return api.put("pods/a/resize", {"metadata": {"name": "a"}, "spec": {"containers": containers}})

    api.post("pods", a_pod("a", containers=asking(cpu="500m", memory="1Gi"))).ok(201)
    small = resize(asking("other:2", cpu="100m", memory="1Mi")).ok()
    container = small["spec"]["containers"][0]
    assert container["resources"] == {"requests": {"cpu": "100m", "memory": "1Mi"}}
    assert (container["image"], small["spec"]["restartPolicy"]) == ("i:1", "Always")
    assert small["metadata"]["generation"] == 2
    assert small["status"] == {"phase": "Pending", "qosClass": "Burstable"}
    field = "spec.containers[0].resources.requests"
    resize(asking(cpu="100m")).refused(422, "Invalid", field=field)
    device = {"requests": {"cpu": "1", "memory": "1Gi", "a.b/c": "1"}, "limits": {"a.b/c": "1"}}
    resize([{"name": "c", "image": "i:1", "resources": device}]).refused(422, "Invalid", field="spec")
    resize([{"name": "d", "image": "i:1"}]).refused(422, "Invalid", field="spec.containers[0].name")
    resize([*asking(cpu="1", memory="1Gi"), {"name": "d", "image": "i"}]).refused(
        422, "Invalid", field="spec.containers"
    )


def a_resize_keeps_the_class_of_service(api: Api) -> None:
    api.post("pods", a_pod("a")).ok(201)
    asked = {"name": "a", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    name = api.get("pods/a").ok()["spec"]["containers"][0]["name"]
    body = {"metadata": {"name": "a"}, "spec": {"containers": [{**asked, "name": name}]}}
    api.put("pods/a/resize", body).refused(422, "Invalid", field="spec")
