"""Keeps words for an agent that asks for them in its turns, where others are told at once.

The request has no capability: that an agent asks is known once it did.
"""

from __future__ import annotations

import asyncio
from typing import Final

PULL: Final = "craft/drainMidTurnQueue"


class PulledWords:
    """Words that wait until the agent asks for them."""

    def __init__(self) -> None:
        self._waiting: list[tuple[str, asyncio.Future[bool]]] = []
        self.is_used = False
        """Whether the agent has ever asked."""

    async def offer(self, text: str) -> bool:
        """Wait until the agent takes words; False if its turn ended before."""
        taken: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append((text, taken))
        try:
            return await taken
        finally:
            self._waiting = [each for each in self._waiting if each[1] is not taken]

    def take(self) -> list[str]:
        """Give the agent all that waits."""
        self.is_used = True
        return [text for text, _ in self._settle(is_taken=True)]

    def hand_back(self) -> None:
        """Give back what the agent did not ask for: its turn is over."""
        self._settle(is_taken=False)

    def _settle(self, *, is_taken: bool) -> list[tuple[str, asyncio.Future[bool]]]:
        settled, self._waiting = self._waiting, []
        for _, taken in settled:
            if not taken.done():
                taken.set_result(is_taken)
        return settled
