"""Repositories as the core knows them: which one a place has, their names, what was proposed."""
