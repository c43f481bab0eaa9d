"""Tools for testing the scheduler and its plugins: shipped, used by our tests, never imported by the running
scheduler."""
