"""`purge` and `forget`: have the running bridge erase, and say what it could not reach."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import TypeVar

from app.cli.client import Client, connected_to_running
from app.cli.conversations.managing import NotConfirmed
from app.cli.lines import one_line
from app.config import Configuration
from app.errors import Conflict
from app.features.erasing.model import ErasedOut, Stays

T = TypeVar("T")
Confirm = Callable[[str], bool]


def purge(
    configuration: Configuration, text: str, confirm: Confirm | None, *, discard: bool
) -> None:
    """Purge a text, after a question.

    Raises:
        BridgeError: the bridge cannot be reached, or refuses; or the person does.
    """
    if not text:
        raise Conflict("there is no text to purge; give it on stdin")
    if confirm is not None and not confirm(
        f"Purge this text of {len(text)} characters from everything that the bridge keeps and has "
        "posted? Agents that know it are stopped. This cannot be undone."
    ):
        raise NotConfirmed("nothing was purged.")
    done = _call(configuration, lambda client: client.purge(text, discard=discard))
    _show(done)
    if any(each.why is Stays.UNSHIPPED for each in done.left) and confirm is not None:
        if not confirm("Delete that work too? It is nowhere else, and this cannot be undone."):
            raise NotConfirmed("the work was kept.")
        _show(_call(configuration, lambda client: client.purge(text, discard=True)))


def forget(configuration: Configuration, who: str, confirm: Confirm | None) -> None:
    """Forget a person, after a question; a name only lists who it may be.

    Raises:
        BridgeError: the bridge cannot be reached, or refuses; or the person does.
    """
    service, colon, known = who.partition(":")
    if not colon:
        found = _call(configuration, lambda client: client.people(who))
        for each in found:
            words = f"{each.service}:{each.id}  {each.name}, {each.messages} messages"
            sys.stdout.write(f"{one_line(words)}\n")
        raise NotConfirmed("name the person as SERVICE:ID.")
    if confirm is not None and not confirm(
        f"Forget {one_line(who)}? What they said and decided here goes, and agents that heard it "
        "start over. This cannot be undone."
    ):
        raise NotConfirmed("nothing was forgotten.")
    _show(_call(configuration, lambda client: client.forget(service, known)))


def _show(done: ErasedOut) -> None:
    parts = [f"{done.rows} rows", f"{done.files} files", f"{done.posts} posts"]
    parts += [f"{done.clones} clones"] * bool(done.clones)
    sys.stderr.write(f"Erased from {', '.join(parts)}.\n")
    for each in done.left:
        where = f": {each.where}" if each.where else ""
        sys.stderr.write(f"! {one_line(f'{each.words}{where}')}\n")


def _call(configuration: Configuration, call: Callable[[Client], Awaitable[T]]) -> T:
    async def run() -> T:
        async with connected_to_running(configuration) as client:
            return await call(client)

    return asyncio.run(run())
