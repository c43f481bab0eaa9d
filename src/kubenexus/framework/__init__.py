"""The words all later rooms speak: reasons, verdicts, pod classes, jobs, decisions, and what a plugin may be.

No machinery here: `cycle` runs plugins, `plan` decides.
"""
