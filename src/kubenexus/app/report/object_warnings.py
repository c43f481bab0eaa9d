"""Logs what cannot be read of nodes and queues, and which pools of devices cannot be used."""

from kubenexus.observe import logs
from kubenexus.state.ledger import Ledger

log = logs.get("objects")


def log_object_warnings(ledger: Ledger) -> None:
    """Logs each problem of a node's labels and annotations, of a queue and of a pool, once for each problem."""
    for node, warnings in ledger.take_node_warnings().items():
        if warnings:
            log.warning("Cannot read all labels and annotations of a node", node=node, why="; ".join(warnings))
    for queue, problem in ledger.queues.take_warnings().items():
        log.warning("Cannot use all that a queue sets", object=queue, why=problem)
    for pool, problem in ledger.nodes.claims.take_warnings().items():
        log.warning("Cannot allocate the devices of a pool: its ResourceSlices are invalid", pool=pool, why=problem)
