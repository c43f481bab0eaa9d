"""The fuzz run: sends valid and malformed objects, as bytes, through the decoder, the ledger and the planner, and
checks invariants.

    stream ──bytes──▶ codec ──▶ ledger ──▶ decide, commit          `delivery` and `scheduling` stand in for the loop
    (valid, strange,               │
     huge, torn)                   └──▶ reference ledger           `message_invariants` and `state_invariants` check

`python -m kubenexus.testing.fuzz --objects 100000 --seed 7` sends 100,000 objects and prints the outcomes. Every object
depends only on the seed and its number, so `--seed 7 --object 4711` reproduces that one.
"""
