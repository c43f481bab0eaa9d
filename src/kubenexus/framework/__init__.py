"""The types that all later packages share: the plugin contract, verdicts, pod classes, jobs and decisions.

This package runs nothing itself: `cycle` calls plugins, `plan` decides.
"""
