"""Determines which recorded answers depend on plugins that we lack, and so cannot be compared."""

import re

from kubenexus.testing.oracle.expected import ExpectedPod, Reject
from kubenexus.testing.oracle.upstream import BuiltProfile

_IN_FILTER = re.compile(r'running "(\w+)" filter plugin: ')
_IN_SCORE = re.compile(r'running (?:Pre)?Score plugin "(\w+)": ')


class Comparability:
    """For one pod: whether only plugins that we have took part in an answer."""

    def __init__(self, expected: ExpectedPod, built: BuiltProfile) -> None:
        self.expected = expected
        self.built = built
        restricting = {plugin for plugin, said in expected.pre_filter.items() if said.nodes is not None}
        self.restriction = restricting <= built.filters
        self.prefilter = self._told_by(expected.pre_filter_fail[0]) if expected.pre_filter_fail else True

    def _told_by(self, plugin: str) -> bool:
        """Whether we have the plugin of a status; a status without a plugin is that of restricted nodes."""
        return plugin in self.built.filters if plugin else self.restriction

    def first(self, reject: Reject) -> bool:
        return self._told_by(reject.first[0])

    def refusal(self, reject: Reject) -> bool:
        """Whether one of our plugins must refuse this node, regardless of others."""
        return self.first(reject) or not self.built.filters.isdisjoint(reject.all)

    @property
    def sentence(self) -> bool:
        return self.prefilter and all(map(self.first, self.expected.rejects.values()))

    @property
    def feasible(self) -> bool:
        """Whether our feasible nodes must be exactly the recorded ones."""
        return all(map(self.refusal, self.expected.rejects.values()))

    @property
    def ranking(self) -> bool:
        """Whether our best nodes are comparable: missing scorers give all nodes the same score."""
        scores = self.expected.scores or {}
        return all(len(set(said.norm)) == 1 for plugin, said in scores.items() if plugin not in self.built.scores)

    @property
    def error(self) -> bool:
        named = _IN_FILTER.match(self.expected.error)
        return not self.expected.error or (named is not None and named[1] in self.built.filters)

    @property
    def score_error(self) -> bool:
        named = _IN_SCORE.match(self.expected.score_error)
        return not self.expected.score_error or (named is not None and named[1] in self.built.scores)
