"""What the process serves: health, metrics, debug pages, authorization, certificates."""
