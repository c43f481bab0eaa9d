"""Jobs that others wait for: looked up at the API server."""
