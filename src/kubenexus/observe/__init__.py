"""Reports to people: metrics, logs, events and status conditions. It decides nothing, and earlier packages never import
it."""
