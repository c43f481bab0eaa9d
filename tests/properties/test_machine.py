"""Whatever happens, in whatever order: the ledger is what a ledger built from scratch would be, a cached answer is
what a fresh one would be, and no row is looked at again that nothing touched."""

from typing import Any, ClassVar

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kubenexus.api.core import Pod, RestartRule, TopologySpreadConstraint
from kubenexus.api.devices.device_share import DeviceShare
from kubenexus.api.selectors import LabelSelector
from kubenexus.base.arrays import AMOUNT_CAP, FLOAT_EXACT_MAX
from kubenexus.framework.job import Job
from kubenexus.framework.profile import ProfilePlugins, TieBreak
from kubenexus.plan.decide import Planner, commit
from kubenexus.plugins import default_profile, profile_plugins
from kubenexus.state.digest import digest
from kubenexus.state.ledger import Ledger
from kubenexus.state.pods import PodStage
from kubenexus.testing.builders import HOSTNAME, ZONE, a_container, a_device_class, a_node, a_pod
from kubenexus.testing.harness import CheckedCluster, ReferenceCluster, on_node
from kubenexus.testing.strategies import EXTENDED, GPU, NODES, PODS, STORAGE, devices, nodes, pods, unreadable
from tests.plugins import reference
from tests.properties.table_content import bytes_of, content_of, fresh_table_of, table_of, waiting_on
from tests.properties.test_ties import ties

SPREAD = [
    TopologySpreadConstraint(topology_key=ZONE, label_selector=LabelSelector(match_labels={"app": "web"})),
    TopologySpreadConstraint(
        topology_key=HOSTNAME,
        when_unsatisfiable="ScheduleAnyway",
        label_selector=LabelSelector(match_labels={"app": "web"}),
    ),
]
# Classes that stay on the bench for the whole run, each with something of its own to watch.
WATCHED = [
    a_pod("plain", cpu="250m", memory="512Mi"),
    a_pod("ports", ports=[80, "10.0.0.1:443"], tolerates=["*"]),
    a_pod("picky", cpu=1, requests={GPU: 1}, requires=["cores Gt 4", f"{ZONE} In a b"], prefers={"disk In ssd": 7}),
    a_pod("images", image="db", image_volumes=["host:5000/big:2"], memory="1Gi", prefers={f"{ZONE} In a": 1}),
    a_pod(
        "large", cpu="1500m", memory=str(FLOAT_EXACT_MAX + 1), requests={STORAGE: "512Mi"}, tolerates=["gpu", "spot"]
    ),
    a_pod("pinned", requires=["metadata.name In n1"], cpu="100m"),
    a_pod("new", containers=[a_container(restart_policy_rules=[RestartRule(action="RestartAllContainers")])]),
    a_pod("urgent", cpu=1, memory="1Gi", priority=10),
    a_pod("friendly", cpu="100m", near=[f"app=web per {ZONE}"]),
    a_pod("lonely", cpu="100m", labels={"app": "web"}, apart=[f"app=web per {HOSTNAME}"]),
    a_pod("even", labels={"app": "web"}, topology_spread_constraints=SPREAD),
]
ASPECTS = ["labels", "taints", "unschedulable", "allocatable", "images", "declared_features"]
RULES = {tie_break: profile_plugins(ties(tie_break, default_profile())) for tie_break in TieBreak}

names, places = st.sampled_from(PODS), st.sampled_from(NODES)


class Machine(RuleBasedStateMachine):
    """With kube-scheduler's plugins; `test_shipped_machine` has the shipped profile."""

    watched: ClassVar[list[Pod]] = WATCHED
    rules_of: ClassVar[dict[TieBreak, ProfilePlugins]] = RULES
    counts_rows: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__()
        self.cluster = CheckedCluster(ReferenceCluster(), Ledger())
        self.reference, self.ledger = self.cluster
        self.profile_plugins = self.rules_of[TieBreak.SEEDED]
        self.planner = Planner(self.profile_plugins)
        self.events: list[tuple[set[int], bool]] = []  # the rows each one touched, and whether it concerned all of them
        self.looked: dict[int, tuple[Any, int]] = {}  # tables, and how many events there were when they were looked at

    @initialize(tie_break=st.sampled_from(TieBreak))
    def a_profile_is_chosen(self, tie_break: TieBreak) -> None:
        self.profile_plugins = self.rules_of[tie_break]
        self.planner = Planner(self.profile_plugins)

    def tell(self, event: str, *args: Any, **options: Any) -> None:
        """To ledger and model; and remember which rows the ledger says it touched."""
        before = self._of_the_cluster()
        rows = self.cluster.tell(event, *args, **options)
        self._touch(rows, moved=before != self._of_the_cluster())

    def _of_the_cluster(self) -> Any:
        """What all rows' answers may depend on: how many nodes there are, and who has which image."""
        images = {name: (state.size, frozenset(state.nodes)) for name, state in self.reference.images.items()}
        return frozenset(self.reference.nodes), images

    def _touch(self, rows: set[int], moved: bool = False) -> None:
        self.events.append((rows, moved))

    # --- nodes ----------------------------------------------------------------------------------------------------

    @rule(node=nodes())
    def a_node_is_added_or_becomes_another(self, node: Any) -> None:
        self.tell("upsert_node", node)

    @rule(name=places)
    def a_good_node_is_added(self, name: str) -> None:
        self.tell("upsert_node", a_node(name, cpu=4, memory="8Gi", zone="a", resources={GPU: 2}))

    @precondition(lambda self: self.reference.nodes)
    @rule(data=st.data(), aspect=st.sampled_from(ASPECTS))
    def one_thing_about_a_node_changes(self, data: st.DataObject, aspect: str) -> None:
        old = data.draw(st.sampled_from(list(self.reference.nodes.values())))
        new = data.draw(nodes(old.metadata.name))
        parts = {
            part: _mixed(getattr(old, part), getattr(new, part), aspect) for part in ("metadata", "spec", "status")
        }
        self.tell("upsert_node", msgspec.structs.replace(old, **parts))

    @precondition(lambda self: self.reference.nodes)
    @rule(data=st.data())
    def a_node_says_again_what_it_said(self, data: st.DataObject) -> None:
        """Heartbeats touch nothing."""
        before = self.ledger.generation
        self.tell("upsert_node", data.draw(st.sampled_from(list(self.reference.nodes.values()))))
        assert self.ledger.generation == before

    @rule(name=places)
    def a_node_is_deleted(self, name: str) -> None:
        self.tell("remove_node", name)

    @rule(name=places, found=devices())
    def devices_are_found(self, name: str, found: Any) -> None:
        self.tell("set_devices", name, found)

    @rule(resource=st.sampled_from(EXTENDED[:2]), name=st.sampled_from(["c", "d"]))
    def a_device_class_appears(self, resource: str, name: str) -> None:
        self.tell("upsert_device_class", a_device_class(name, resource=resource))
        self._touch(set(self.ledger.nodes.row_of.values()))

    @rule(name=st.sampled_from(["c", "d"]))
    def a_device_class_disappears(self, name: str) -> None:
        self.tell("remove_device_class", name)
        self._touch(set(self.ledger.nodes.row_of.values()))

    # --- pods, as the API server tells of them --------------------------------------------------------------------

    @rule(data=st.data(), name=names, node=places)
    def a_pod_runs_somewhere(self, data: st.DataObject, name: str, node: str) -> None:
        """Bound by us or by others, new or changed, resized or finished, made again under a new UID."""
        self.tell("upsert_pod", data.draw(pods(name, node, running=True)))

    @precondition(lambda self: any(p.spec.node_name for p in self.reference.pods.values()))
    @rule(data=st.data())
    def a_running_pod_changes(self, data: st.DataObject) -> None:
        old = data.draw(st.sampled_from([p for p in self.reference.pods.values() if p.spec.node_name]))
        new = data.draw(pods(old.metadata.name, old.spec.node_name, running=True))
        self.tell("upsert_pod", msgspec.structs.replace(new, metadata=old.metadata))

    @rule(data=st.data(), name=names, node=places)
    def a_pod_waits_for_a_node(self, data: st.DataObject, name: str, node: str) -> None:
        if not self.reference.is_bound(f"default/{name}"):
            self.tell("upsert_pod", data.draw(pods(name, nominated=node)))

    @rule(data=st.data(), name=names)
    def a_pod_waits_for_no_node(self, data: st.DataObject, name: str) -> None:
        if not self.reference.is_bound(f"default/{name}"):
            self.tell("upsert_pod", data.draw(pods(name)))

    @rule(name=names)
    def a_pod_is_deleted(self, name: str) -> None:
        self.tell("remove_pod", f"default/{name}")

    @rule(name=names, node=places, how=st.sampled_from(["cannot be counted", "cannot be decoded"]))
    def a_pod_cannot_be_read(self, name: str, node: str, how: str) -> None:
        key = f"default/{name}"
        concerned = {node} | {pod.spec.node_name for each, pod in self.reference.placed().items() if each == key}
        concerned.add(self.reference.unreadable.get(key, node))  # the node it was said to run on is opened again
        if how == "cannot be counted":
            self.tell("upsert_pod", unreadable(name, node))
        else:
            self.tell("block_unreadable_pod", key, node)
        self._touch({row for n, row in self.ledger.nodes.row_of.items() if n in concerned})

    @rule(data=st.data())
    def the_watch_had_a_gap(self, data: st.DataObject) -> None:
        """Everything is listed anew; some things went away, and some changed, while nobody looked."""
        kept = data.draw(st.sets(places, min_size=2))
        listed = [node for name, node in self.reference.nodes.items() if name in kept]
        fresh = data.draw(st.lists(nodes(), max_size=1))
        found = {node.metadata.name: node for node in [*listed, *fresh]}
        left = {key: pod for key, pod in self.reference.pods.items() if data.draw(st.booleans())}
        bound = data.draw(st.lists(pods(node="n0", running=True), max_size=1))
        seen = left | {pod.key: pod for pod in bound}
        for node in found.values():
            self.tell("upsert_node", node)
        for pod in seen.values():
            self.tell("upsert_pod", pod)
        for name in self.reference.nodes.keys() - found.keys():
            self.tell("remove_node", name)
        for key in {*self.reference.pods, *self.reference.promises, *self.reference.unreadable} - seen.keys():
            self.tell("remove_pod", key)
        self._touch(set(range(self.ledger.nodes.size)), moved=True)

    # --- what we do -----------------------------------------------------------------------------------------------

    @precondition(lambda self: self.reference.nodes)
    @rule(
        data=st.data(),
        name=names,
        takes=st.sampled_from([(), (DeviceShare("gpu-0", 500, 1 << 30),), (DeviceShare("gpu-1"),)]),
    )
    def a_pod_is_assumed(self, data: st.DataObject, name: str, takes: Any) -> None:
        node = data.draw(st.sampled_from(list(self.reference.nodes)))
        pod = self._as_told(data.draw(pods(name)))
        if self._pending(pod):
            self.tell("assume", pod, node, 0.0, takes=takes)
            self._touch({self.ledger.nodes.row_of[node]})

    @rule(name=names)
    def its_bind_fails(self, name: str) -> None:
        self.tell("forget", f"default/{name}")

    @precondition(lambda self: self.reference.promises)
    @rule(data=st.data(), elsewhere=st.booleans())
    def an_assumed_pod_is_bound(self, data: st.DataObject, elsewhere: bool) -> None:
        promise = data.draw(st.sampled_from(list(self.reference.promises.values())))
        node = data.draw(places) if elsewhere else promise.node
        if not self.reference.is_bound(promise.pod.key):
            self.tell("upsert_pod", on_node(promise.pod, node))

    @precondition(lambda self: self.reference.nodes)
    @rule(data=st.data(), keep=st.booleans(), number=st.integers(1, 3))
    def several_pods_are_tried(self, data: st.DataObject, keep: bool, number: int) -> None:
        """Kept together, or taken back to the last byte."""
        tried = [data.draw(pods(f"t{i}")) for i in range(number)]
        on = [data.draw(st.sampled_from(list(self.reference.nodes))) for _ in tried]
        before, generation = bytes_of(self.ledger), self.ledger.generation
        keep = keep and not any(pod.key in self.reference.placed() for pod in tried)
        with self.ledger.transaction() as transaction:
            for pod, node in zip(tried, on, strict=True):
                transaction.place(
                    pod, node, self.planner.class_cache.lookup(pod, self.ledger.nodes).table.pod.footprint
                )
            if keep:
                transaction.commit(0.0)
        self._touch({self.ledger.nodes.row_of[node] for node in on})
        if keep:
            for pod, node in zip(tried, on, strict=True):
                self.reference.assume(pod, node)
        else:
            assert (bytes_of(self.ledger), self.ledger.generation) == (before, generation)

    @rule(pod=pods())
    def a_pod_is_scheduled(self, pod: Pod) -> None:
        """The decision is the one that a planner without memory makes, and changes nothing until it is committed."""
        pod = self._as_told(pod)
        if not self._pending(pod):
            return
        before = bytes_of(self.ledger)
        decision = self.planner.decide(Job.of(pod), self.ledger.snapshot(), 0.0)
        assert bytes_of(self.ledger) == before
        assert decision == Planner(self.profile_plugins).decide(Job.of(pod), self.ledger.snapshot(), 0.0)
        rows = self.ledger.nodes.row_of
        self._touch({rows[node] for node in self.ledger.nominated_nodes if node in rows})
        if decision.placed:
            commit(decision, Job.of(pod), self.ledger, 0.0)
            (placement,) = decision.placements
            self.reference.assume(pod, placement.node, takes=placement.assignment.device_shares)
            self._touch({rows[decision.placements[0].node]})

    def _as_told(self, pod: Pod) -> Pod:
        """We schedule what the API server showed us, if it did."""
        return self.reference.pods.get(pod.key, pod)

    def _pending(self, pod: Pod) -> bool:
        return pod.key not in self.reference.placed() and pod.key not in self.reference.unreadable

    # --- the laws -------------------------------------------------------------------------------------------------

    @rule(which=st.sets(st.integers(0, len(WATCHED) - 1), min_size=1))
    def some_classes_are_looked_at(self, which: set[int]) -> None:
        for i in sorted(which):
            self._look(i % len(self.watched))

    @invariant()
    def a_cached_answer_is_a_fresh_one(self) -> None:
        self._look(0)

    def _look(self, i: int) -> None:
        class_cache, size = self.planner.class_cache, self.ledger.nodes.size
        rows, builds = class_cache.work.rows, class_cache.work.builds
        cached = table_of(self.watched[i], self.ledger, class_cache)
        done, built = class_cache.work.rows - rows, class_cache.work.builds - builds
        table = class_cache.lookup(self.watched[i], self.ledger.nodes).table
        since = self.events[self.looked.get(id(table), (table, 0))[1] :]
        touched = set[int]().union(*(some for some, _ in since))
        everywhere = built + any(moved for _, moved in since)
        what = f"{self.watched[i].metadata.name}: looked at {done} rows, of which {since} touched fewer"
        assert not self.counts_rows or done <= len(touched) + everywhere * size, what
        assert cached == fresh_table_of(self.watched[i], self.ledger, self.profile_plugins)
        self.looked[id(table)] = (table, len(self.events))

    @invariant()
    def the_ledger_is_a_rebuilt_ledger(self) -> None:
        rebuilt = self.reference.ledger()
        if digest(self.ledger) != digest(rebuilt):
            assert content_of(self.ledger) == content_of(rebuilt)
            raise AssertionError("the digests differ, though nothing else does")
        assert waiting_on(self.ledger) == waiting_on(rebuilt)

    @invariant()
    def an_audit_finds_nothing_and_moves_nothing(self) -> None:
        columns = self.ledger.nodes
        before = (
            self.ledger.generation,
            columns.node_changes.mark,
            columns.usage_changes.mark,
            columns.cluster_version,
        )
        assert [found for node in self.reference.nodes.values() for found in self.ledger.audit(node)] == []
        assert [found for each in columns.pods.queries for found in self.ledger.audit_query(each)] == []
        after = (self.ledger.generation, columns.node_changes.mark, columns.usage_changes.mark, columns.cluster_version)
        assert after == before

    @invariant()
    def images_are_where_they_are_reported_and_as_large(self) -> None:
        nodes = self.ledger.nodes
        found = [(name, size, node) for node, row in nodes.row_of.items() for name, size in nodes.images.of_row(row)]
        images = self.reference.images.items()
        assert sorted(found) == sorted((name, image.size, node) for name, image in images for node in image.nodes)

    @invariant()
    def every_counter_is_the_sum_of_its_pods(self) -> None:
        resources = self.ledger.nodes.resources
        for name, info in self.reference.infos().items():
            row = self.ledger.nodes.row_of[name]
            for resource, r in resources.index.items():
                exact = len(info.pods) if resource == "pods" else reference.taken(info, resource)
                assert resources.used[r, row] == min(exact, AMOUNT_CAP), (name, resource)

    @invariant()
    def those_that_are_assumed_are_counted(self) -> None:
        assert self.ledger.assumed == sum(record.stage is PodStage.ASSUMED for record in self.ledger.pods.values())

    @invariant()
    def no_counter_is_negative(self) -> None:
        columns = self.ledger.nodes
        assert columns.resources.used.min(initial=0) >= 0
        assert columns.resources.nonzero.min(initial=0) >= 0
        assert columns.cordoned_count == int(columns.cordoned.sum())
        assert columns.count == int(columns.alive.sum()) == len(self.reference.nodes)
        assert not columns.resources.used[:, ~columns.alive].any()

    def teardown(self) -> None:
        for i in range(len(self.watched)):
            self._look(i)


def _mixed(old: Any, new: Any, aspect: str) -> Any:
    """The old part of a node, with one of the new one's fields."""
    return msgspec.structs.replace(old, **{aspect: getattr(new, aspect)}) if hasattr(old, aspect) else old


TestMachine = Machine.TestCase
TestMachine.settings = settings(max_examples=max(20, settings().max_examples // 4), stateful_step_count=30)
