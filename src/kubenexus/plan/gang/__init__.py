"""Gangs: all members planned together, on the columns.

`crews` sorts members into classes and counts how many each node can take; `axes` are the levels of the topology;
`sites` finds the tightest domain that holds the gang; `fill` takes the fewest nodes of it. Gangs of several classes are
packed by `mixed`, and what only asking after each member can tell is left to `search`.
"""
