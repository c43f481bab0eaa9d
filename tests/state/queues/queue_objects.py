"""Queues in few words, and what they use by adding up all pods."""

from collections import Counter
from typing import Any

from kubenexus.api.codec import from_data
from kubenexus.api.queues.queue import Queue
from kubenexus.api.queues.settings import QueueSettings, queue_settings
from kubenexus.state.ledger import Ledger


def a_queue(name: str, **spec: Any) -> QueueSettings:
    queue = from_data({"metadata": {"name": name}, "spec": spec}, Queue)
    return queue_settings(name, queue.spec)


def used(ledger: Ledger) -> dict[str, dict[str, int]]:
    """What each queue uses by the tree, without those that use nothing."""
    return {node.name: dict(node.used) for node in ledger.queues.queues() if node.used}


def added_up(ledger: Ledger) -> dict[str, dict[str, int]]:
    """What each queue uses by adding up all assumed and bound pods."""
    sums: dict[str, Counter[str]] = {}
    for record in ledger.pods.values():
        for node in ledger.queues.queue_of(record.namespace).path():
            if node is ledger.queues.root or (node.parent is not None and node.parent.own is node):
                continue
            amounts = sums.setdefault(node.name, Counter())
            amounts.update(dict(record.footprint.amounts))
            amounts["pods"] += 1
    return {name: dict(+amounts) for name, amounts in sums.items()}
