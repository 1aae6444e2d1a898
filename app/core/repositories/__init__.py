"""Repositories in the core: choice per place, names, clones and proposals."""
