"""Preemption as kube-scheduler's DefaultPreemption: which pods of lower priority have to go so that one pod fits.

default_preemption   who may preempt, the candidates, the choice among them, the message
select_victims       the dry run on one node
node_trial           the filters on one row, while pods are removed from it and put back
candidate            the six criteria by which one candidate is chosen
"""
