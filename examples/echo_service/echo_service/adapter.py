"""One agent's presence behind a webhook."""

from __future__ import annotations

from typing_extensions import override

from app.clock import Clock
from app.core.adapters import Adapter
from app.model.inbound import Delivery, Inbound
from app.model.keys import PlaceKey, SessionKey
from app.model.posts import PostSend, PostSent
from app.model.types import Speaker
from echo_service import events, signing
from echo_service.callback import Callback
from echo_service.render import render
from echo_service.settings import NAME, EchoCredentials

PACE_SECONDS = 1.0
"""Often enough for people who watch, seldom enough for a script."""


class EchoAdapter(Adapter):
    """The adapter port for webhooks and callbacks."""

    def __init__(
        self, agent: str, credentials: EchoCredentials, paths: tuple[str, ...], clock: Clock
    ) -> None:
        super().__init__(
            NAME, agent, pace=PACE_SECONDS, paths=paths, signature_header="X-Echo-Signature"
        )
        self._secret = credentials.webhook_secret
        self._callback = Callback(credentials, clock)

    @override
    def verify(self, headers: dict[bytes, bytes], body: bytes, now: float) -> Delivery:
        """Check signature and time."""
        secret = self._secret.get_secret_value()
        return signing.verify(self.service_name, secret, headers, body, now)

    @override
    def parse(self, delivery: Delivery) -> Inbound:
        """Read a message or an answer."""
        return events.read(delivery, self.agent)

    @override
    async def refusal(self, speaker: Speaker, place: PlaceKey) -> str | None:
        """Allow everybody: the sender, who holds the secret, says who speaks."""
        return None

    @override
    async def send(self, post: PostSend) -> PostSent:
        """Send a post as a whole, under an id of its own."""
        await self._callback.send(render(post))
        return PostSent(post.remote_id or post.marker)

    @override
    async def find(self, target: SessionKey, marker: str) -> PostSent | None:
        """Let a lost post be sent again: under the same id it replaces itself."""
        return None

    @override
    async def whisper(self, key: SessionKey, speaker: Speaker, words: str) -> None:
        """Ask the sender to tell one person something."""
        place, agent = key.external, key.agent
        await self._callback.send(
            {"type": "whisper", "place": place, "agent": agent, "to": speaker.id, "text": words}
        )

    @override
    async def close(self) -> None:
        """Let go of the connections."""
        await self._callback.close()
