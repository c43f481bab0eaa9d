"""The ledger and its columns: what is true of the cluster, kept by one writer. Calls no plugin."""
