"""Gangs: all members planned together, on the columns.

`crews` sorts members into classes (`kinds` tells which are alike) and counts how many each node can take; `axes` are
the levels of the topology; `sites` finds the tightest domain that holds the gang; `fill` takes the fewest nodes of it.
Gangs of several classes are packed by `mixed`: in a few orders at first, then by `beam`, which looks for a way to place
all, and by `table`, which knows the most that can be. What only asking after each member can tell is left to `search`.
"""
