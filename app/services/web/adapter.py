"""One agent's presence on the page; people read the transcript there, so nothing is sent."""

from __future__ import annotations

from collections.abc import Sequence

from app.core.inbound import Delivery, Heard
from app.core.keys import PlaceKey, SessionKey, adapter_name
from app.core.posts import PostSend, PostSent
from app.core.types import Earlier, Speaker
from app.services.web import events


class WebAdapter:
    """The adapter port for the page and the API."""

    pace = 60.0
    """Progress of a turn reaches the page through its transcript, so there is no hurry here."""

    def __init__(self, agent: str) -> None:
        self.agent = agent
        self.service_name = adapter_name(events.SERVICE, agent)

    def parse(self, delivery: Delivery) -> Heard:
        """Read a message of the page."""
        return events.heard(delivery)

    def is_shared(self, _key: SessionKey) -> bool:
        """Tell that other agents can answer as well."""
        return True

    async def refusal(self, speaker: Speaker, place: PlaceKey) -> str | None:  # noqa: ARG002
        """Allow everybody: whoever gets this far is signed in."""
        return None

    async def earlier(self, key: SessionKey, before: str) -> Sequence[Earlier]:  # noqa: ARG002
        """Know nothing more: all that was ever said on the page is in the transcript."""
        return ()

    async def whisper(self, key: SessionKey, speaker: Speaker, words: str) -> None:
        """Do nothing: the page tells people what it refuses in its answer."""

    async def send(self, post: PostSend) -> PostSent:
        """Note a post as sent: the page shows the transcript."""
        return PostSent(remote_id=post.remote_id or post.marker, consumed=len(post.content.text))

    async def find(self, target: SessionKey, marker: str) -> PostSent | None:  # noqa: ARG002
        """Find a post again: sending it once more would change nothing."""
        return None

    async def close(self) -> None:
        """Do nothing: nothing is held open."""
