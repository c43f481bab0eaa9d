"""One pod class against all nodes: which are feasible, how they score, and the repair of cached results.

Nothing here writes to the ledger.
"""
