"""One pod class against all nodes: masks, scores, their caches and the caches' repair. Commits nothing."""
