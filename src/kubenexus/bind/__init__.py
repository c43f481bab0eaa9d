"""Carries decisions out: binds and volumes become API calls, their answers become values. Decides nothing.

Start with `dispatcher.py`.
"""
