"""The bridge's own page and API as a service like all others."""
