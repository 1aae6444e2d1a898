"""Simulated platforms on loopback: stateful, refusing what the real ones refuse.

A witness, not a mirror: nothing of the bridge is imported.
"""
