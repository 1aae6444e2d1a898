"""The Protocols that the store implements for the core: one per kind of decision.

A port has one method per decision. What must be true together is one method and one commit.
"""
