"""The simulated world: platforms on loopback that refuse what the real ones refuse."""
