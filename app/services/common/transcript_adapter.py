"""Base of adapters whose people read the transcript itself on the page: nothing is sent."""

from __future__ import annotations

from typing import Final

from typing_extensions import override

from app.core.adapters import Adapter
from app.model.keys import SessionKey
from app.model.posts import Cleaned, PostSend, PostSent
from app.model.types import Speaker
from app.vault import Vault

PACE_SECONDS: Final = 60.0
"""Progress reaches the page through the transcript, so posts need not be frequent."""


class TranscriptAdapter(Adapter):
    """The half of the adapter port that sends."""

    def __init__(self, service: str, agent: str, *, pace: float = PACE_SECONDS) -> None:
        super().__init__(service, agent, pace=pace)

    @override
    async def whisper(self, key: SessionKey, speaker: Speaker, words: str) -> None:
        """Do nothing: the page reports a refusal in its response."""

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
