"""Small rules of a third party, and a scheduler that runs them beside the built-in ones."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kubenexus.api.core import Node, Pod
from kubenexus.framework.extension_points import HIGHER_IS_BETTER, Depends, Normalize
from kubenexus.framework.job import Job, JobView
from kubenexus.framework.pod_class import PodClass
from kubenexus.framework.profile import EnabledPlugin, ProfilePlugins
from kubenexus.framework.verdict import NodeVerdict
from kubenexus.plugins import BUILT_IN, default_profile
from kubenexus.state.view import Nodes
from kubenexus.testing.harness import Run, run


class Rule:
    """A plugin from outside: it is not in the built-in table, so the runtime checks its results."""

    name = "Rule"
    reads: tuple[str, ...] = ()
    depends = Depends.USAGE

    def __init__(self, args: Mapping[str, Any]) -> None:
        pass


def scoring(
    answer: Callable[[Nodes], Any], by: Normalize = HIGHER_IS_BETTER, on: Depends = Depends.USAGE
) -> type[Rule]:
    """A rule that scores by a function of the nodes."""

    class Scoring(Rule):
        normalize = by
        depends = on

        def score(self, pod: PodClass, nodes: Nodes, job: JobView) -> Any:
            return answer(nodes)

    return Scoring


def filtering(answer: Callable[[Nodes, NodeVerdict], None]) -> type[Rule]:
    class Filtering(Rule):
        def filter(self, pod: PodClass, nodes: Nodes, verdict: NodeVerdict) -> None:
            answer(nodes, verdict)

    return Filtering


def lineup_with(*rules: type[Any], weight: int = 1000) -> ProfilePlugins:
    """The built-in rules and these, which weigh so much that they decide."""
    also = [EnabledPlugin(rule.name, weight) for rule in rules]
    return ProfilePlugins(default_profile(also=also), {**BUILT_IN, **{rule.name: rule for rule in rules}})


def scheduled(rule: type[Any], nodes: Iterable[Node], pods: Iterable[Pod | Job], weight: int = 1000) -> Run:
    return run(nodes, pods, profile=lineup_with(rule, weight=weight))


def label_number(nodes: Nodes, key: str = "points") -> Any:
    """A label read as a number on every row of the view, 0 where it is missing."""
    import numpy as np

    codes, column = nodes.label(key)
    return np.array([float(name or 0) for name in column.values.names])[codes]
