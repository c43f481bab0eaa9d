"""From bytes to a pod: one by one as a watch brings them, and as a page of a list. Both per pod."""

from bench import objects
from bench.cluster import PAGE
from bench.measure import Round, clock
from bench.objects import Template
from kubenexus.api.codec import decode_list, decode_pod
from kubenexus.api.core import Pod


def one_by_one(calls: int) -> Round:
    texts = _running(calls)

    def round_() -> float:
        start = clock()
        for text in texts:
            decode_pod(text)
        return (clock() - start) / len(texts)

    return round_


def page(pods: int = PAGE) -> Round:
    text = objects.pod_page([each.decode() for each in _running(pods)])

    def round_() -> float:
        start = clock()
        decode_list(text, Pod)
        return (clock() - start) / pods

    return round_


def _running(pods: int) -> list[bytes]:
    """Pods that run: the longest texts, and the most frequent."""
    return [objects.pod(Template(), i, objects.node_name(i)).encode() for i in range(pods)]
