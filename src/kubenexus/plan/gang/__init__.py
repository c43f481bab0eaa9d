"""Gang planning: all members placed together, computed on the columns.

member_classes   groups members by pod class, and counts how many each node takes (`class_matcher` avoids signing)
topology         the topology levels that the gang may use
domain_choice    the tightest domain that holds the gang
fill             the fewest nodes of that domain
solver           one gang: one class (`packing`, `spread_packing`), several, or member by member
multi_class      several classes on shared nodes: a few orders first, then a beam search, then the exact maximum
backtracking     member by member, where plugins have to be called again after each
gang_limits      the work that one decision may take
reservation      capacity kept for the first gang that waits
"""
