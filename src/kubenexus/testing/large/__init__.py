"""Objects as large as an API server accepts, and a whole scheduler whose turns are timed while it meets them.

`pods` and `others` make the objects: one field grown to a number of entries, or to a number of bytes. `stage` plays a
cluster around a scheduler. The bench row `longest turn` and the growing fuzz run are both made of these.
"""
