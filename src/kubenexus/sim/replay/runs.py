"""Runs of a trace: every policy with every seed, on the same arrivals."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from kubenexus.base.errors import KubeNexusError
from kubenexus.sim.replay.backfill_order import FIRST_FIT, Estimates, Order
from kubenexus.sim.replay.cluster import ReplayCluster, ledger_of
from kubenexus.sim.replay.fill import fill
from kubenexus.sim.replay.policies.named import policy_plugins
from kubenexus.sim.replay.progress import Progress
from kubenexus.sim.replay.results import FillResult
from kubenexus.sim.replay.timeline import play
from kubenexus.sim.replay.timeline_result import TimelineResult
from kubenexus.sim.replay.traces.trace import Trace
from kubenexus.state.ledger import Ledger

Result = FillResult | TimelineResult


class ReplayPlan(NamedTuple):
    """A trace, and how the jobs of a run follow from it and the seed.

    `start` makes the ledger that a run starts with; None: the trace's nodes, empty.
    """

    trace: Trace
    arrivals: Callable[[Trace, int], Trace]
    start: Callable[[], Ledger] | None = None

    def ledger(self) -> Ledger:
        if self.start is not None:
            return self.start()
        return ledger_of(self.trace.nodes, shared=any(job.shape.is_part for job in self.trace.jobs))


def run_all(
    plans: Sequence[ReplayPlan],
    policies: Sequence[str],
    seeds: Sequence[int],
    *,
    config: Path | None = None,
    orders: Sequence[Order] = (FIRST_FIT,),
    estimates: Estimates | None = None,
    ask_every: int = 0,
    progress: Callable[[str, int], Progress] = lambda name, jobs: lambda done: None,
) -> Iterator[Result]:
    """Yields the result of each run. Ends after one that was interrupted. Raises KubeNexusError for an unknown policy
    before the first run.

    `orders` are those of jobs that wait, and `estimates` what jobs declare; both need jobs that end. With `ask_every`
    expected starts are compared with the truth (`start_forecasts`). A run of another
    order than first-fit has it behind the name of its policy.

    `progress` is called for each run with its name and its number of jobs; what it returns, with jobs that are done.
    """
    for policy in policies:
        policy_plugins(policy, plans[0].trace, seeds[0], config)
    for plan in plans:
        for seed in seeds:
            arrivals = plan.arrivals(plan.trace, seed)
            if orders != (FIRST_FIT,) and not arrivals.has_departures:
                raise KubeNexusError(f"trace {plan.trace.name}: no job ends, so there is no order of waiting jobs")
            arrivals = arrivals if estimates is None else estimates.apply(arrivals)
            for policy, order in [(policy, order) for policy in policies for order in orders]:
                name = policy if order == FIRST_FIT else f"{policy} {order}"
                report = progress(f"{plan.trace.name} {name} {seed}", len(arrivals.jobs))
                cluster = ReplayCluster(plan.ledger(), policy_plugins(policy, plan.trace, seed, config))
                result: Result
                if arrivals.has_departures:
                    result = play(
                        arrivals, cluster, policy=name, seed=seed, order=order, ask_every=ask_every, progress=report
                    )
                else:
                    result = fill(arrivals, cluster, policy=name, seed=seed, progress=report)
                yield result
                if not result.complete:
                    return
