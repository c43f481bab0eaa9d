"""From watches to the ledger and the queue: informers, event handlers, the object cache."""
