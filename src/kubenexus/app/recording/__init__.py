"""The flight recorder: the changes of the ledger and the decisions, in a bounded ring of files."""
