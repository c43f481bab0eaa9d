"""Whatever happens, in whatever order: what is wanted comes true, once, and then there is peace."""

from typing import Any

from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from hypothesis.strategies import booleans, integers, sampled_from

from tests.sim.controllers.controller_fixture import APPS, BATCH, CORE, ControllerFixture, sized, template

SIZES = integers(0, 6)
WHO = sampled_from(range(12))


class Turmoil(RuleBasedStateMachine):
    """A Deployment, a StatefulSet, a DaemonSet and an indexed Job; people who change their minds; pods that end."""

    def __init__(self) -> None:
        super().__init__()
        self.fixture = ControllerFixture()
        self.web, self.db, self.nodes, self.version = 3, 2, 2, 1

    @initialize(strategy=sampled_from(["RollingUpdate", "Recreate"]), policy=sampled_from(["OrderedReady", "Parallel"]))
    def everything_is_applied(self, strategy: str, policy: str) -> None:
        fixture = self.fixture
        for number in range(self.nodes):
            fixture.node(f"n{number}")
        fixture.apply(APPS, "deployments", "web", sized("web", self.web, strategy={"type": strategy}))
        fixture.apply(APPS, "statefulsets", "db", sized("db", self.db, podManagementPolicy=policy))
        daemon = {"selector": {"matchLabels": {"app": "ds"}}, "template": template("ds")}
        fixture.apply(APPS, "daemonsets", "ds", daemon)
        job = {"completions": 4, "parallelism": 2, "completionMode": "Indexed", "backoffLimit": 100}
        fixture.apply(BATCH, "jobs", "sum", {**job, "template": template("sum", "Never")})

    @rule(size=SIZES)
    def the_deployment_is_scaled(self, size: int) -> None:
        self.web = size
        self.fixture.patch(APPS, "deployments", "web", {"spec": {"replicas": size}})

    @rule(size=SIZES)
    def the_stateful_set_is_scaled(self, size: int) -> None:
        self.db = size
        self.fixture.patch(APPS, "statefulsets", "db", {"spec": {"replicas": size}})

    @rule()
    def there_is_a_new_version(self) -> None:
        self.version += 1
        containers = [{"name": "c", "image": f"i:{self.version}"}]
        for kind, name in (("deployments", "web"), ("statefulsets", "db"), ("daemonsets", "ds")):
            self.fixture.patch(APPS, kind, name, {"spec": {"template": {"spec": {"containers": containers}}}})

    @rule()
    def a_node_joins(self) -> None:
        self.fixture.node(f"n{self.nodes}")
        self.nodes += 1

    @rule(who=WHO)
    def somebody_deletes_a_pod(self, who: int) -> None:
        names = self.fixture.names()
        if names:
            self.fixture.delete(CORE, "pods", names[who % len(names)])

    @rule(who=WHO, well=booleans())
    def a_pod_ends(self, who: int, well: bool) -> None:
        alive = [each for each in self.fixture.pods() if each["status"]["phase"] == "Running"]
        if alive:
            self.fixture.finish(alive[who % len(alive)]["metadata"]["name"], "Succeeded" if well else "Failed")

    @rule(who=WHO)
    def somebody_takes_a_pod_out(self, who: int) -> None:
        pods = [each for each in self.fixture.pods() if each["metadata"]["labels"].get("app") == "web"]
        if pods:
            self.fixture.patch(
                CORE, "pods", pods[who % len(pods)]["metadata"]["name"], {"metadata": {"labels": {"app": "x"}}}
            )

    @rule()
    def kubelets_and_scheduler_work(self) -> None:
        self.fixture.act()

    @rule(turns=integers(1, 20))
    def the_controllers_get_on(self, turns: int) -> None:
        self.fixture.controllers.run(turns)

    @rule()
    def the_controllers_are_killed_and_started_again(self) -> None:
        self.fixture.restart()

    @precondition(lambda self: self.fixture.items(APPS, "deployments"))
    @rule()
    def all_comes_true(self) -> None:
        self.peace()
        assert len(self.alive("web")) == self.web
        assert sorted(self.alive("db")) == [f"db-{number}" for number in range(self.db)]
        assert len(self.alive("ds")) == self.nodes
        status = self.fixture.get(APPS, "deployments", "web")["status"]
        assert status.get("availableReplicas", 0) == self.web
        images = {
            pod["spec"]["containers"][0]["image"] for app in ("web", "db", "ds") for pod in self.alive(app).values()
        }
        assert images <= {f"i:{self.version}"}

    @invariant()
    def no_number_is_worked_on_twice(self) -> None:
        numbers = [
            pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"]
            for pod in self.alive("sum").values()
        ]
        assert len(numbers) == len(set(numbers)) <= 2

    def teardown(self) -> None:
        """In the end the job is done, every number once, and restarted controllers find nothing to do."""
        if not self.fixture.items(BATCH, "jobs"):
            return
        self.peace()
        while left := self.alive("sum"):
            for name in left:
                self.fixture.finish(name)
            self.peace()
        job = self.fixture.get(BATCH, "jobs", "sum")["status"]
        assert (job["succeeded"], job["completedIndexes"]) == (4, "0-3")
        self.fixture.settle()
        self.fixture.restart()
        assert self.fixture.settle() == 0

    def peace(self) -> None:
        for _ in range(20):
            self.fixture.busy()
            due = self.fixture.controllers.next_due()
            if due is None:
                return
            self.fixture.clock.advance_to(due)

    def alive(self, app: str) -> dict[str, Any]:
        return {
            pod["metadata"]["name"]: pod
            for pod in self.fixture.pods()
            if pod["metadata"]["labels"].get("app") == app
            and "deletionTimestamp" not in pod["metadata"]
            and pod["status"]["phase"] not in {"Succeeded", "Failed"}
        }


TestTurmoil = Turmoil.TestCase
TestTurmoil.settings = settings(stateful_step_count=20, max_examples=max(25, settings().max_examples // 2))
