"""ResourceReservations: the kind, and what one asks for."""
