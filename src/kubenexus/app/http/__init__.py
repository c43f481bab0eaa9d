"""The HTTP endpoints of the process: health, metrics, debug pages, authorization, certificates."""
