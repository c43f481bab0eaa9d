"""Objects as large as an API server accepts, and a whole scheduler whose turns are timed while it processes them.

`pods` and `objects` create objects with one field grown to a number of entries or bytes, `groups` many objects at once.
`large_cluster` runs a scheduler on a cluster. The benchmark row `longest turn` and the growing fuzz run use these.
"""
