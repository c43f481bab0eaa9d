"""Preemption: which pods have to go so that a job fits. Pure; `app.preemption` evicts them.

In a profile named default-scheduler, as kube-scheduler does:

    default_preemption   who may preempt, the candidates, the choice among them, the message
    select_victims       the dry run on one node
    node_trial           the filters on one row, while pods are removed from it and put back
    candidate            the six criteria by which one candidate is chosen

In other profiles, for whole jobs:

    gang_preemption      the entry: who may preempt, the search, the result
    policy, sentences    its settings, and what people read
    victim_pool          the pods that may go, as columns, and which of them go together
    victim_choice        whether some pods may go together, and their cost
    free_amounts         what is free on each node, and what victims would free
    elements, least_cover
                         the fewest victims that free enough
    pod_search           victims for a single pod
    gang_search, gang_trials, member_counts, member_states
                         victims for a gang
    pod_moves            whether victims that only move fit on other nodes
"""
