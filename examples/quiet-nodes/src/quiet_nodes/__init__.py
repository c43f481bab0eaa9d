"""QuietNodes: prefer the nodes that run the fewest pods, whatever these ask for. A whole plugin, in its own package."""

from kubenexus.framework.extension_points import LOWER_IS_BETTER, Depends


class QuietNodes:
    name = "QuietNodes"  # as in pyproject.toml and in profiles
    reads = ()  # no field of the pod matters, so all pods of a cluster are alike to this rule
    depends = Depends.USAGE  # a placement changes the answer, on the row where it happened
    normalize = LOWER_IS_BETTER  # no pods become 100 points, the most pods 0

    def __init__(self, args):
        self._ignored = int(args.get("daemons", 0))  # so many run on every node anyway

    def score(self, pod, nodes, job):
        return (nodes.used("pods") - self._ignored).clip(min=0)
