"""The simulated world: platforms on loopback that refuse what the real ones refuse.

A witness, not a mirror: nothing of the bridge is imported but its errors.
"""
