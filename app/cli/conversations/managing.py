"""Manages conversations over the API of the running bridge, and shows what was done."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from app.cli.client import Client, connected_to_running
from app.cli.lines import one_line, printable
from app.cli.listing import when
from app.cli.tables import show_json, show_table
from app.config import Configuration
from app.errors import BridgeError
from app.features.conversations.shapes import ContentsOut, ConversationOut
from app.model.file_names import size_words

T = TypeVar("T")
Confirm = Callable[[str], bool]


class NotConfirmed(BridgeError):
    """The person at the terminal said no."""


def show_list(
    configuration: Configuration,
    wanted: Mapping[str, str | int | bool | None],
    *,
    as_json: bool = False,
) -> None:
    """Show conversations.

    Raises:
        BridgeError: the bridge cannot be reached, or refuses.
    """
    found = _call(configuration, lambda client: client.conversations(**wanted))
    if as_json:
        show_json([each.model_dump(mode="json") for each in found])
        return
    if not found:
        sys.stderr.write("No such conversations.\n")
        return
    show_table(
        ("id", "agents", "where", "repository", "used", "title"),
        [
            (
                str(each.id),
                ", ".join(session.agent for session in each.sessions),
                each.service,
                each.repository,
                when(each.updated_at),
                f"{_marks(each)}{each.title}",
            )
            for each in found
        ],
    )


def export(configuration: Configuration, number: int, form: str) -> None:
    """Write a whole conversation to stdout.

    Raises:
        BridgeError: the bridge cannot be reached, or refuses.
    """
    text = _call(configuration, lambda client: client.export(number, form))
    sys.stdout.write(printable(text) if sys.stdout.isatty() else text)
    sys.stdout.flush()


def change(configuration: Configuration, number: int, **what: str | bool) -> None:
    """Rename, pin or archive a conversation.

    Raises:
        BridgeError: the bridge cannot be reached, or refuses.
    """
    _tell(_call(configuration, lambda client: client.change_conversation(number, **what)))


def fork(configuration: Configuration, number: int, after: int | None) -> None:
    """Copy a conversation into a new thread.

    Raises:
        BridgeError: the bridge cannot be reached, or refuses.
    """
    _tell(_call(configuration, lambda client: client.fork_conversation(number, after)))


def clear(configuration: Configuration, number: int, confirm: Confirm | None) -> None:
    """Delete what was said in a conversation, after a question.

    Raises:
        BridgeError: the bridge cannot be reached, or refuses; or the person does.
    """
    found = _call(configuration, lambda client: client.conversation(number))
    if confirm is not None and not confirm(
        f"Delete everything said in {one_line(found.title)!r}? Work in progress is stopped."
    ):
        raise NotConfirmed("nothing was cleared.")
    _tell(_call(configuration, lambda client: client.clear_conversation(number)))


def delete(
    configuration: Configuration, number: int, confirm: Confirm | None, *, discard: bool
) -> None:
    """Delete a conversation, after a question that says what is deleted.

    Raises:
        BridgeError: the bridge cannot be reached, or refuses; or the person does.
    """
    found = _call(configuration, lambda client: client.contents(number))
    for line in _list(found):
        sys.stderr.write(f"{one_line(line)}\n")
    if found.unshipped and not discard:
        raise NotConfirmed(
            "it holds work that is nowhere else. Ship it, or delete it too with --discard."
        )
    if confirm is not None and not confirm("Delete all of this? It cannot be undone."):
        raise NotConfirmed("nothing was deleted.")
    _call(configuration, lambda client: client.delete_conversation(number, discard=discard))
    sys.stderr.write("Deleted.\n")


def _list(found: ContentsOut) -> list[str]:
    return [
        f"{found.title}: {found.messages} messages, {found.turns} turns, "
        f"{found.schedules} schedules, {size_words(found.disk_bytes)} on disk",
        *(f"  file {name}" for name in found.files),
        *(
            f"! WORK THAT IS NOWHERE ELSE: {each.repository} {each.branch}: {each.held}"
            for each in found.unshipped
        ),
        *([f"  {found.posts} posts stay on the platform"] if found.posts else []),
    ]


def _tell(found: ConversationOut) -> None:
    sys.stderr.write(f"{found.id}: {_marks(found)}{one_line(found.title)} ({found.path})\n")


def _marks(found: ConversationOut) -> str:
    return "".join(("* " * found.pinned, "(archived) " * found.archived))


def _call(configuration: Configuration, call: Callable[[Client], Awaitable[T]]) -> T:
    async def run() -> T:
        async with connected_to_running(configuration) as client:
            return await call(client)

    return asyncio.run(run())
