"""Logs what cannot be read of nodes and queues."""

from kubenexus.observe import logs
from kubenexus.state.ledger import Ledger

log = logs.get("objects")


def log_object_warnings(ledger: Ledger) -> None:
    """Logs each problem of a node's labels and annotations, and of a queue, once and again when it changes."""
    for node, warnings in ledger.take_node_warnings().items():
        if warnings:
            log.warning("Cannot read all labels and annotations of a node", node=node, why="; ".join(warnings))
    for queue, problem in ledger.queues.take_warnings().items():
        log.warning("Cannot use all that a queue sets", object=queue, why=problem)
