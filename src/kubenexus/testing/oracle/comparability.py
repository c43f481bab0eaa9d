"""Who had a say: which recorded answers depend on plugins we have not built, and so cannot be compared."""

import re
from typing import Final

from kubenexus.testing.oracle.expected import ExpectedPod, Reject
from kubenexus.testing.oracle.upstream import BuiltProfile

# Why answers are left that could be compared: `OurAnswers.kept_back`.
NOT_BUILT: Final = "pods with device claims, and resources that a DeviceClass backs (DynamicResources is not built)"
_IN_FILTER = re.compile(r'running "(\w+)" filter plugin: ')
_IN_SCORE = re.compile(r'running (?:Pre)?Score plugin "(\w+)": ')


class Comparability:
    """About one pod. Every method answers: did only plugins that we have built take part in this?"""

    def __init__(self, expected: ExpectedPod, built: BuiltProfile) -> None:
        self.expected = expected
        self.built = built
        restricting = {plugin for plugin, said in expected.pre_filter.items() if said.nodes is not None}
        self.restriction = restricting <= built.filters
        self.prefilter = self._told_by(expected.pre_filter_fail[0]) if expected.pre_filter_fail else True

    def _told_by(self, plugin: str) -> bool:
        """Whether a status of this plugin is ours to give; the nameless one is that of restricted nodes."""
        return plugin in self.built.filters if plugin else self.restriction

    def first(self, reject: Reject) -> bool:
        return self._told_by(reject.first[0])

    def refusal(self, reject: Reject) -> bool:
        """Whether some plugin of ours has to refuse this node, whoever else does."""
        return self.first(reject) or not self.built.filters.isdisjoint(reject.all)

    @property
    def sentence(self) -> bool:
        return self.prefilter and all(map(self.first, self.expected.rejects.values()))

    @property
    def feasible(self) -> bool:
        """Whether our feasible nodes have to be exactly the recorded ones."""
        return all(map(self.refusal, self.expected.rejects.values()))

    @property
    def ranking(self) -> bool:
        """A scorer that gives all nodes the same has no say in which is best."""
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
