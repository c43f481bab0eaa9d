"""After a bind: its result is applied, and a bind that the watch does not confirm is verified."""
