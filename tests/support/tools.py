"""A bridge with tools made for tests, for stories about how tools are reached."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from app.model.agents import Arguments, Caller, Result, Tool, ToolRefused
from tests.support import observe
from tests.support.observe import Observed

LOOK_SECONDS = 0.02
PROGRESS_SECONDS = 0.1
TEXT = {"type": "string", "description": "Any text."}


@dataclass
class Tooled(Observed):
    """A bridge whose agents have the tools below and those for asking agents, and no others."""

    startup: ClassVar[str] = "tests.support.tools"


async def _echo(caller: Caller, arguments: Arguments) -> Result:
    return {**arguments, "session": caller.session.id, "turn": caller.turn.id}


async def _refuse(_caller: Caller, arguments: Arguments) -> Result:
    raise ToolRefused(f"Not {arguments['text']}. Ask for something else.")


async def _break(_caller: Caller, arguments: Arguments) -> Result:
    raise RuntimeError(f"internal {arguments['text']}")


async def _wait(_caller: Caller, arguments: Arguments) -> Result:
    """Wait until the file that is named has gone."""
    await asyncio.to_thread(Path(arguments["text"]).touch)
    try:
        while await asyncio.to_thread(Path(arguments["text"]).exists):  # noqa: ASYNC110 - a file
            await asyncio.sleep(LOOK_SECONDS)
    except asyncio.CancelledError:
        Path(f"{arguments['text']}.cancelled").touch()  # noqa: ASYNC240 - it must not wait now
        raise
    return {"waited": True}


def make_tools() -> Iterator[Tool]:
    """Make the tools."""
    many = {"type": "integer", "minimum": 1, "maximum": 9, "default": 1}
    listed = {"type": "array", "items": {"type": "object"}, "default": []}
    more: dict[str, Any] = {"text": TEXT, "times": many, "list": listed}
    yield Tool("echo", "Returns what it is given.", more, ("test.read",), _echo)
    yield Tool("echo_loud", "Returns it too.", {"text": TEXT}, ("test.read", "test.loud"), _echo)
    yield Tool("refuse", "Refuses.", {"text": TEXT}, ("test.write",), _refuse)
    yield Tool("break", "Breaks.", {"text": TEXT}, ("test.write",), _break)
    yield Tool("wait", "Waits for a file to go.", {"text": TEXT}, ("test.wait",), _wait)


def main(plan_file: str) -> None:
    """Run a bridge by a plan, with these tools."""
    from app.main import build
    from app.mcp_server import protocol

    setattr(protocol, "PROGRESS_SECONDS", PROGRESS_SECONDS)  # noqa: B010 - for this process alone

    setattr(build, "list_tools", lambda *_parts: make_tools())  # noqa: B010 - for this process alone
    observe.main(plan_file)


if __name__ == "__main__":
    main(sys.argv[1])
