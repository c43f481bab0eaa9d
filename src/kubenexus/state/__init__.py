"""The state of the cluster: the ledger, its only writer, and the columns that plugins read. Calls no plugin."""
