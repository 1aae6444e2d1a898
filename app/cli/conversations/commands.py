"""Defines the commands of `conversations`; each imports what it needs."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from app.cli.framing import Json, examples, in_one_line, read_configuration

conversations = typer.Typer(
    help="List, search and manage conversations of the running bridge.",
    no_args_is_help=True,
    rich_markup_mode=None,
    epilog=examples(
        "conversations list --agent claude",
        'conversations rename 12 "Login fails"',
        "conversations export 12 > login.md",
        "conversations delete 12",
    ),
)
Number = Annotated[int, typer.Argument(metavar="ID", help="Its number; see `conversations list`.")]
Agent = Annotated[str | None, typer.Option(help="Only those with this agent.")]
Repository = Annotated[
    str | None, typer.Option(help="Only those there: OWNER/NAME, folder:/PATH or none.")
]
Limit = Annotated[int, typer.Option(min=1, max=500, help="The most to list.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


class Form(StrEnum):
    """How an export is written."""

    MARKDOWN = "markdown"
    JSON = "json"


@conversations.command("list")
def list_conversations(
    agent: Agent = None,
    repository: Repository = None,
    limit: Limit = 50,
    *,
    archived: Annotated[bool, typer.Option("--archived", help="Only archived ones.")] = False,
    as_json: Json = False,
) -> None:
    """List conversations, the one used last first."""
    with in_one_line():
        from app.cli.conversations.managing import show_list  # noqa: PLC0415 - 0.4 s

        wanted = {"agent": agent, "repository": repository, "limit": limit, "archived": archived}
        show_list(read_configuration(), wanted, as_json=as_json)


@conversations.command("search")
def search(
    words: Annotated[list[str], typer.Argument(help="What its titles or texts must have.")],
    agent: Agent = None,
    repository: Repository = None,
    limit: Limit = 50,
    *,
    as_json: Json = False,
) -> None:
    """Find conversations by words in their titles and texts, archived ones too."""
    with in_one_line():
        from app.cli.conversations.managing import show_list  # noqa: PLC0415 - 0.4 s

        wanted = {"q": " ".join(words), "agent": agent, "repository": repository, "limit": limit}
        show_list(read_configuration(), wanted, as_json=as_json)


@conversations.command("latest")
def latest(
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="The name of the agent.")],
    *,
    as_json: Json = False,
) -> None:
    """Show the most recent conversation with an agent."""
    with in_one_line():
        from app.cli.conversations.managing import show_list  # noqa: PLC0415 - 0.4 s

        show_list(read_configuration(), {"agent": agent, "limit": 1}, as_json=as_json)


@conversations.command("show")
def show(number: Number) -> None:
    """Show a whole conversation, as Markdown."""
    _export(number, Form.MARKDOWN)


@conversations.command("export")
def export(
    number: Number,
    form: Annotated[Form, typer.Option("--format", help="How it is written.")] = Form.MARKDOWN,
) -> None:
    """Write a whole conversation to stdout."""
    _export(number, form)


@conversations.command("rename")
def rename(
    number: Number, title: Annotated[str, typer.Argument(help="Agents do not change it.")]
) -> None:
    """Give a conversation a title."""
    _change(number, title=title)


@conversations.command("pin")
def pin(number: Number) -> None:
    """Keep a conversation on top of the list."""
    _change(number, pinned=True)


@conversations.command("unpin")
def unpin(number: Number) -> None:
    """Keep a conversation on top no longer."""
    _change(number, pinned=False)


@conversations.command("archive")
def archive(number: Number) -> None:
    """Take a conversation out of the list until something is said in it."""
    _change(number, archived=True)


@conversations.command("unarchive")
def unarchive(number: Number) -> None:
    """Put a conversation back into the list."""
    _change(number, archived=False)


@conversations.command("fork")
def fork(
    number: Number,
    after: Annotated[
        int | None, typer.Option(min=1, help="The row of the transcript to fork after.")
    ] = None,
) -> None:
    """Copy a conversation into a new thread, all of it or up to a row."""
    with in_one_line():
        from app.cli.conversations.managing import fork as run  # noqa: PLC0415 - 0.4 s

        run(read_configuration(), number, after)


@conversations.command("clear")
def clear(number: Number, *, yes: Yes = False) -> None:
    """Delete what was said in a conversation; the files its agents work on stay."""
    with in_one_line():
        from app.cli.conversations.managing import clear as run  # noqa: PLC0415 - 0.4 s

        run(read_configuration(), number, None if yes else _confirm)


@conversations.command("delete")
def delete(
    number: Number,
    *,
    discard: Annotated[
        bool, typer.Option("--discard", help="Also delete work that is nowhere else.")
    ] = False,
    yes: Yes = False,
) -> None:
    """Delete a conversation with everything it left; shows what that is, and asks."""
    with in_one_line():
        from app.cli.conversations.managing import delete as run  # noqa: PLC0415 - 0.4 s

        run(read_configuration(), number, None if yes else _confirm, discard=discard)


def _export(number: int, form: Form) -> None:
    with in_one_line():
        from app.cli.conversations.managing import export as run  # noqa: PLC0415 - 0.4 s

        run(read_configuration(), number, form)


def _change(number: int, **what: str | bool) -> None:
    with in_one_line():
        from app.cli.conversations.managing import change  # noqa: PLC0415 - 0.4 s

        change(read_configuration(), number, **what)


def _confirm(question: str) -> bool:
    return typer.confirm(question, default=False, err=True)
