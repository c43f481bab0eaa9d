"""Reserved capacity: the ledger's table of it, and the ResourceReservations of the API server."""
