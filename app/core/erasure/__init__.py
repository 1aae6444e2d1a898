"""Erasing on demand: a text that leaked, and a person who wants to be forgotten."""
