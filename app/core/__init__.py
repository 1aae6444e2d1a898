"""Decisions of the bridge: plain Python that knows no platform, no protocol and no database."""
