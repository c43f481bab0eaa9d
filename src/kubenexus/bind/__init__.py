"""Carrying a decision out: binds, volumes and notes as calls, their outcomes as values. Decides nothing.

Start with `dispatcher.py`.
"""
