"""Informers, event handlers and the object cache: from the watches to the ledger and the queue."""
