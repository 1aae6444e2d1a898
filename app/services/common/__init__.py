"""Mechanisms that services share; a service may import these, never another service."""
