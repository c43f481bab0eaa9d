"""Tools for testing a scheduler or a rule of it: shipped, used by our own tests, never by what runs in a cluster."""
