"""The adapter of one agent where it works for agents; people read the transcript on the page."""

from __future__ import annotations

from typing import Final

from typing_extensions import override

from app.core.adapters import Adapter
from app.core.delegation.types import SERVICE
from app.core.inbound import Delivery, Inbound
from app.core.keys import PlaceKey, SessionKey
from app.core.posts import Cleaned, PostSend, PostSent
from app.core.types import Speaker
from app.errors import DeliveryRefused
from app.services.agents.wording import NOT_HERE
from app.vault import Vault

PACE_SECONDS: Final = 60.0
"""Progress reaches the page through the transcript, so posts need not be frequent."""


class AgentsAdapter(Adapter):
    """The adapter port for places of agents; nothing comes in and nothing is sent."""

    def __init__(self, agent: str, *, pace: float = PACE_SECONDS) -> None:
        super().__init__(SERVICE, agent, pace=pace)

    @override
    def parse(self, delivery: Delivery) -> Inbound:
        """Refuse every delivery: there are none here."""
        raise DeliveryRefused("nothing is delivered here", status=404)

    @override
    async def refusal(self, speaker: Speaker, place: PlaceKey) -> str:
        """Refuse everyone: people talk where it all began."""
        return NOT_HERE

    @override
    def is_shared(self, key: SessionKey) -> bool:
        """Tell that no other agent answers here."""
        return False

    @override
    def mention(self, name: str) -> str:
        """Return nothing: agents are asked by a tool here."""
        return ""

    @override
    async def whisper(self, key: SessionKey, speaker: Speaker, words: str) -> None:
        """Do nothing: no person talks here."""

    @override
    async def send(self, post: PostSend) -> PostSent:
        """Note a post as sent: the page shows the transcript."""
        return PostSent(remote_id=post.remote_id or post.marker, consumed=len(post.content.text))

    @override
    async def find(self, target: SessionKey, marker: str) -> PostSent | None:
        """Return None: sending a post again would change nothing."""
        return None

    @override
    async def purge(self, key: SessionKey, vault: Vault) -> Cleaned:
        """Do nothing: everything shown here is in the store."""
        return Cleaned()
