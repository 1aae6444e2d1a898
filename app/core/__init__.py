"""What the bridge decides: plain Python that knows no platform, no protocol and no database."""
