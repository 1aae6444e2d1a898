"""Agents that the bench starts as children: single files of the standard library."""
