"""An adapter that keeps a transcript of what it was asked to send and fails on demand."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from typing_extensions import override

from app.core.adapters import Adapter
from app.errors import PostRejected
from app.model.inbound import Delivery, Inbound
from app.model.keys import PlaceKey, SessionKey
from app.model.posts import PostSend, PostSent
from app.model.types import Earlier, Speaker


class Recorder(Adapter):
    """The adapter port, in memory; it refuses what a platform refuses."""

    def __init__(
        self,
        agent: str = "demo",
        *,
        pace: float = 1.0,
        service: str = "web",
        first_word_seconds: float | None = None,
    ) -> None:
        super().__init__(service, agent, pace=pace, first_word_seconds=first_word_seconds)
        self.calls: list[PostSend] = []
        self.failures: list[Exception] = []
        self.lost_answers = 0
        self.said_earlier: list[Earlier] = []
        self.whispers: list[tuple[SessionKey, Speaker, str]] = []
        self.consumes = False
        self.shared = True
        self.remote: dict[str, str] = {}
        """The messages that are there, by marker."""
        self._changed = asyncio.Event()

    async def sent(self, calls: int) -> None:
        """Wait until so many calls were made."""
        async with asyncio.timeout(5):
            while len(self.calls) < calls:
                self._changed.clear()
                await self._changed.wait()

    @override
    def parse(self, delivery: Delivery) -> Inbound | None:
        return None

    @override
    def is_shared(self, _key: SessionKey) -> bool:
        return self.shared

    @override
    async def refusal(self, speaker: Speaker, place: PlaceKey) -> str | None:
        return None

    @override
    async def earlier(self, key: SessionKey, before: str) -> Sequence[Earlier]:
        return self.said_earlier

    @override
    async def whisper(self, key: SessionKey, speaker: Speaker, words: str) -> None:
        self.whispers.append((key, speaker, words))

    @override
    async def send(self, post: PostSend) -> PostSent:
        self.calls.append(post)
        self._changed.set()
        if self.failures:
            raise self.failures.pop(0)
        if post.op == "create":
            self.remote[post.marker] = f"r{len(self.remote) + 1}"
        elif post.remote_id not in self.remote.values():
            raise PostRejected("there is no such message")
        if self.lost_answers:
            self.lost_answers -= 1
            raise TimeoutError("the answer was lost")
        consumed = len(post.content.text) if self.consumes else 0
        return PostSent(post.remote_id or self.remote[post.marker], consumed)

    @override
    async def find(self, target: SessionKey, marker: str) -> PostSent | None:
        remote = self.remote.get(marker)
        return PostSent(remote) if remote else None
