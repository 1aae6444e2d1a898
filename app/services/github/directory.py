"""Holds the identities of our Apps on GitHub."""

from __future__ import annotations

from app.services.common.identity import Roster
from app.services.github.mentions import Identities, Identity


class Directory(Roster[Identity]):
    """The agents that have an App."""

    us = Identities()
    """The ones known so far."""

    def introduce(self, identity: Identity) -> None:
        """Set an agent's identity."""
        self.add(identity.agent, identity)
        self.us = Identities.of(self.known.values())
