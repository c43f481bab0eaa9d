"""Compares one case: every incoming pod on every node, our answers beside Kubernetes'.

An answer that a plugin we lack took part in is compared as far as possible; the rest counts as not compared. Where a
rule of ours refuses what such a plugin would have placed (docs/differences.md), those nodes are not compared, and the
report says how often.
"""

import msgspec

from kubenexus.api.core import Pod
from kubenexus.api.resources import footprint
from kubenexus.base.errors import KubeNexusError
from kubenexus.framework.verdict import Code
from kubenexus.plan.decide import Planner
from kubenexus.state.ledger import Ledger
from kubenexus.testing.oracle.cluster import Item, incoming, ledger_of
from kubenexus.testing.oracle.comparability import Comparability
from kubenexus.testing.oracle.comparison_counts import ComparisonCounts
from kubenexus.testing.oracle.expected import Expected, ExpectedPod, First, PreFiltered, first_of, status_of
from kubenexus.testing.oracle.our_answers import OurAnswers
from kubenexus.testing.oracle.preemption import compare_preemption
from kubenexus.testing.oracle.scores import compare_scores
from kubenexus.testing.oracle.upstream import FILTERS, BuiltProfile

_EXPECTED = msgspec.json.Decoder(Expected)


def compare_case(item: Item, tally: ComparisonCounts, built: BuiltProfile) -> None:
    """Compares a case. Raises any error of reading it or of answering."""
    expected = _EXPECTED.decode(item.expected).pods
    pods = {pod.key: pod for pod in incoming(item.case)}
    if pods.keys() != expected.keys():
        raise KubeNexusError(f"incoming pods {sorted(pods)}, but answers about {sorted(expected)}")
    ledger, planner = ledger_of(item.case), Planner(built.profile_plugins)
    for key, pod in pods.items():
        part = tally.within(item.case.id, key)
        _compare_pod(pod, expected[key], ledger, planner, built, part)
        tally.add(part)
    tally.compare("case", "judged", "judged")


def _compare_pod(
    pod: Pod, expected: ExpectedPod, ledger: Ledger, planner: Planner, built: BuiltProfile, tally: ComparisonCounts
) -> None:
    ours, say = OurAnswers(pod, ledger, planner), Comparability(expected, built)
    _compare_requests(pod, expected, tally)
    _compare_prefilter(ours, expected, built, tally)
    _compare_prefilters(ours, expected, say, tally)
    _compare_filters(ours, expected, built, tally)
    _compare_nodes(ours, expected, say, tally)
    _compare_errors(ours, expected, say, tally)
    compare_scores(ours, expected, say, tally)
    compare_preemption(ours, expected, say, tally)
    _compare_devices(ours, expected, tally)


def _compare_requests(pod: Pod, expected: ExpectedPod, tally: ComparisonCounts) -> None:
    counted = footprint(pod)
    tally.compare("requests", dict(counted.amounts), expected.requests)
    nonzero = {"cpu": counted.nonzero_cpu, "memory": counted.nonzero_memory}
    tally.compare("nonZeroRequests", nonzero, expected.non_zero_requests)


def _compare_prefilter(ours: OurAnswers, expected: ExpectedPod, built: BuiltProfile, tally: ComparisonCounts) -> None:
    """Compares each plugin's PreFilter on its own."""
    for plugin in FILTERS:
        if plugin not in built.filters:
            tally.leave("skipFilter", plugin=plugin)
            tally.leave("preFilter", plugin=plugin)
            continue
        tally.compare("skipFilter", plugin in ours.skipped, plugin in expected.skip_filter, plugin=plugin)
        said = expected.pre_filter.get(plugin)
        wanted = PreFiltered() if said is None else said.answer()
        tally.compare("preFilter", ours.prefiltered.get(plugin, PreFiltered()), wanted, plugin=plugin)


def _compare_prefilters(ours: OurAnswers, expected: ExpectedPod, say: Comparability, tally: ComparisonCounts) -> None:
    """Compares all PreFilters together: the failure that ends the attempt, or the remaining nodes."""
    fail, nodes = expected.pre_filter_fail, expected.pre_filter_nodes
    if say.prefilter:
        tally.compare("preFilterFail", ours.refused, None if fail is None else first_of(fail))
    else:
        tally.leave("preFilterFail")
    if say.prefilter and say.restriction:
        tally.compare("preFilterNodes", ours.only, None if nodes is None else frozenset(nodes))
    else:
        tally.leave("preFilterNodes")


def _compare_filters(ours: OurAnswers, expected: ExpectedPod, built: BuiltProfile, tally: ComparisonCounts) -> None:
    """Compares each filter on its own, on every node: refusals and acceptances."""
    nodes = len(ours.columns.row_of)
    for plugin in FILTERS:
        if plugin not in built.filters:
            tally.leave("filter", nodes, plugin=plugin)
            continue
        wanted = {name: status_of(r.all[plugin]) for name, r in expected.rejects.items() if plugin in r.all}
        tally.compare_nodes("filter", ours.rejects.get(plugin, {}), wanted, plugin=plugin, nodes=nodes)


def _compare_nodes(ours: OurAnswers, expected: ExpectedPod, say: Comparability, tally: ComparisonCounts) -> None:
    """Compares the outcome of each node with all filters, nominated pods counted in."""
    for node in expected.feasible:
        tally.compare("feasible", node in ours.feasible, True, node=node)
    for node, reject in expected.rejects.items():
        plugin = reject.first[0]
        if say.refusal(reject):
            tally.compare("feasible", node in ours.feasible, False, node=node)
        else:
            tally.leave("feasible")
        if say.first(reject):
            tally.compare("first", ours.firsts.get(node), first_of(reject.first), plugin=plugin, node=node)
        else:
            tally.leave("first", plugin=plugin)


def _compare_errors(ours: OurAnswers, expected: ExpectedPod, say: Comparability, tally: ComparisonCounts) -> None:
    """Compares how the attempt ends without a node."""
    if not say.error:
        tally.leave("error")
    else:
        texts = {_error(ours.firsts.get(node)) for node, r in expected.rejects.items() if say.first(r)} - {""}
        # Upstream filters nodes in parallel and reports the error of any one of them.
        tally.compare("error", expected.error if expected.error in texts else ", ".join(sorted(texts)), expected.error)
    if expected.fit_error is None:
        return
    if say.sentence:
        tally.compare("fitError", ours.decision.sentence(), expected.fit_error)
    else:
        tally.leave("fitError")


def _compare_devices(ours: OurAnswers, expected: ExpectedPod, tally: ComparisonCounts) -> None:
    """Compares the devices that the claims of the pod would get on each feasible node."""
    for node, claims in expected.devices.items():
        given = ours.devices(node)
        for claim, devices in claims.items():
            tally.compare("devices", given.get(claim), [tuple(each) for each in devices], node=node)


def _error(first: First | None) -> str:
    if first is None or first[1] != Code.ERROR.label:
        return ""
    return ", ".join(sorted(first[2]))
