"""What follows a bind: its result, and the check of binds that the watch does not confirm."""
