"""The fuzz run: hostile and half-broken objects, as bytes, through the whole path, and what must hold whatever comes.

    stream ──bytes──▶ codec ──▶ ledger ──▶ decide, commit          `hearing` and `deciding` play the loop
    (good, strange,                │
     huge, torn)                   └──▶ twin                       `laws` judge what was said, `books` what was counted

`python -m kubenexus.testing.fuzz --objects 100000 --seed 7` throws 100,000 objects and prints what became of them.
Every object follows from the seed and its number alone, so `--seed 7 --object 4711` shows that one again.
"""
