"""`agents files`: lists, shows, writes, removes and restores the files of agents."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypeVar

from app.cli.client import Client, connected_to_running
from app.cli.invocation import hint
from app.cli.lines import one_line
from app.cli.tables import show_json, show_table
from app.config import Configuration
from app.errors import Conflict

T = TypeVar("T")
SHARED: Final = "-"
"""Means all agents where the name of one is expected."""
STDIN: Final = "-"


def list_files(configuration: Configuration, name: str, *, as_json: bool = False) -> None:
    """List the files of an agent.

    Raises:
        BridgeError: there is no such agent, or no bridge runs.
    """
    found = _run(configuration, lambda bridge: bridge.files(_agent(name)))
    if as_json:
        show_json([each.model_dump(mode="json") for each in found])
        return
    rows = [
        (each.path, f"{each.size} bytes", _when(each.changed_at), each.problem) for each in found
    ]
    show_table(("file", "size", "changed", "problem"), rows)


def show(configuration: Configuration, name: str, path: str) -> None:
    """Print the text of a file.

    Raises:
        BridgeError: there is none, or no bridge runs.
    """
    found = _run(configuration, lambda bridge: bridge.file(_agent(name), path))
    sys.stdout.write(found.text)
    if found.problem:
        _say(f"{path}: {found.problem}")


def put(configuration: Configuration, name: str, path: str, source: str) -> None:
    """Write a file from another one, or from stdin.

    Raises:
        BridgeError: it was refused, or no bridge runs.
    """
    content = sys.stdin.buffer.read() if source == STDIN else Path(source).read_bytes()
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise Conflict(f"{source} is not UTF-8 text. Nothing was written.") from None
    _run(configuration, lambda bridge: bridge.write_file(_agent(name), path, text))
    _say(f"{path} was written. Running sessions are told at their next turn.")


def remove(configuration: Configuration, name: str, path: str) -> None:
    """Delete a file.

    Raises:
        BridgeError: there is none, or no bridge runs.
    """
    _run(configuration, lambda bridge: bridge.delete_file(_agent(name), path))
    _say(f"{path} was removed. `agents files {name} undo {path}` brings it back.")


def undo(configuration: Configuration, name: str, path: str) -> None:
    """Undo the last change of a file.

    Raises:
        BridgeError: nothing is kept, or no bridge runs.
    """
    found = _run(configuration, lambda bridge: bridge.undo_file(_agent(name), path))
    _say(f"{path} is as before." if found.digest else f"{path} is gone, as before.")


def _agent(name: str) -> str | None:
    return None if name == SHARED else name


def _when(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _run(configuration: Configuration, work: Callable[[Client], Awaitable[T]]) -> T:
    async def run() -> T:
        async with connected_to_running(configuration) as bridge:
            return await work(bridge)

    return asyncio.run(run())


def _say(words: str) -> None:
    sys.stderr.write(f"{one_line(hint(words))}\n")
