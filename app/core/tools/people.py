"""Lets an agent ask people a question, and wait for the answer for a while.

The question outlives the call and the turn: its answer reaches the agent in any case, once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Final, Protocol

from app.core.tools import wording
from app.model.agents import Arguments, Caller, Result, Tool, ToolRefused
from app.model.updates import ASK_PERSON, Ask, AskOption, AskRequest

LONGEST_SECONDS: Final = 300
"""How long one call waits, unless the agent's program gives up sooner."""
QUESTION_CHARACTERS: Final = 1_500
OPTIONS: Final = 8
OPTION_CHARACTERS: Final = 75
"""The longest label of a button on the strictest platform."""


class Asking(Protocol):
    """Asks people during a turn."""

    async def ask(self, session_id: int, request: AskRequest, *, patience: float) -> Ask | None:
        """Ask, wait, and return the question as it is then; None if no turn runs."""
        ...


class PeopleTools:
    """The tool with which agents ask people."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking

    def tools(self) -> Sequence[Tool]:
        """List the tools."""
        return (
            Tool(
                "ask_person",
                wording.ASK_PERSON.format(longest=LONGEST_SECONDS),
                {
                    "question": {
                        "type": "string",
                        "minLength": 1,
                        "maxLength": QUESTION_CHARACTERS,
                        "description": "The question. It must make sense on its own.",
                    },
                    "options": {
                        "type": "array",
                        "maxItems": OPTIONS,
                        "uniqueItems": True,
                        "items": {
                            "type": "string",
                            "minLength": 1,
                            "maxLength": OPTION_CHARACTERS,
                        },
                        "default": [],
                        "description": "Short answers to choose from, shown as buttons.",
                    },
                    "free_text": {
                        "type": "boolean",
                        "default": False,
                        "description": "Whether any words answer it; always so without options.",
                    },
                    "wait_seconds": {
                        "type": "integer",
                        "minimum": 0,
                        "maximum": LONGEST_SECONDS,
                        "default": LONGEST_SECONDS,
                        "description": "How long to wait for the answer in this call.",
                    },
                },
                ("people.ask",),
                self._ask,
            ),
        )

    async def _ask(self, caller: Caller, arguments: Arguments) -> Result:
        request = build_question(
            arguments["question"],
            arguments.get("options", ()),
            free_text=arguments.get("free_text", False),
        )
        patience = min(arguments.get("wait_seconds", LONGEST_SECONDS), caller.patience)
        ask = await self._asking.ask(caller.session.id, request, patience=patience)
        if ask is None:
            raise ToolRefused(wording.NO_TURN)
        match ask.state:
            case "answered":
                return {"state": "answered", "answer": ask.answer_name, "by": ask.answered_by}
            case "open":
                return {"state": "open", "note": wording.STILL_OPEN}
            case _:
                return {"state": "closed", "note": wording.CLOSED}


def build_question(question: str, options: Sequence[str], *, free_text: bool) -> AskRequest:
    """Make the ask of a question; the same words make the same ask."""
    words = json.dumps([question, list(options), free_text]).encode()
    return AskRequest(
        call=ASK_PERSON,
        title=question,
        options=tuple(
            AskOption(f"option-{number}", name, "answer") for number, name in enumerate(options, 1)
        ),
        arguments_hash=f"{ASK_PERSON}:{hashlib.sha256(words).hexdigest()}",
        kind="question",
        free_text=free_text or not options,
        tool_kind=ASK_PERSON,
    )
