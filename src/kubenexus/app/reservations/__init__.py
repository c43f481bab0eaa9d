"""ResourceReservations: from objects to reserved capacity in the ledger, and back to their status."""
