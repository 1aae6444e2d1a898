"""Stores what is to be erased, and takes it out of the rows."""
