"""Tells people what the network refused an agent, and asks whether to allow a host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from app.acp.audience import Audience
from app.model.ask_view import AskFact
from app.model.updates import AskOption, AskRequest

_ALLOW: Final = "allow"
_OPTIONS: Final = (
    AskOption(_ALLOW, "Allow for this session", "allow_once"),
    AskOption("reject", "Reject", "reject_once"),
)


@dataclass(frozen=True, slots=True)
class AudienceWitness:
    """Reports to the running turn; implements `Witness`."""

    agent: str
    audience: Audience

    async def note(self, words: str) -> None:
        """Put a notice into the transcript."""
        await self.audience.note(words)

    async def ask(self, host: str, port: int) -> bool | None:
        """Let a person decide on a host; None between turns, and without an answer."""
        title = f"Let {self.agent} connect to {host} for this session?"
        request = AskRequest(
            "network",
            title,
            _OPTIONS,
            # Finds an answer that came while the session was parked.
            arguments_hash=f"network:{host}",
            subject=f"{host}:{port}",
            facts=(AskFact("host", host),),
        )
        answer = await self.audience.ask(request)
        return None if answer is None else answer == _ALLOW
