"""Packing of gangs whose members are of several classes, and share nodes. The entry point is `packer.MultiClassPacker`.

packing_problem  rows, free resources, requests; the budget and the plan
beam_search      a way to place all members, or none
search_bounds    upper bounds that cut the search
row_fillings     the ways to fill one row
exact_packing    the maximum, for small gangs
"""
