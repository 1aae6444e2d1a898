"""Simulates Slack on loopback, for tests and for trying agents by hand.

It is an independent witness: it imports nothing of the bridge but its errors.
"""
