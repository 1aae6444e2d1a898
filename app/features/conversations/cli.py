"""`conversations` and `sessions`: show and manage conversations, and the work of agents in them."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated

from typer import Argument, Option

from app.features.conversations.model import ContentsOut, ConversationOut
from app.model.text import size_words
from app.model.types import SessionState
from app.server.shapes import EntryOut, SessionDetail, SessionOut
from app.terminal.api import REMOVAL, Api, find_bridge
from app.terminal.framing import (
    Json,
    NotConfirmed,
    Yes,
    add_group,
    command_name,
    commands,
    confirm,
    examples,
    one_line,
    printable,
    read_configuration,
    show_json,
    show_list,
    when,
)
from app.terminal.screen import transcript_lines

COMMANDS = commands()
conversations = add_group(
    COMMANDS,
    "conversations",
    "List, search and manage conversations of the running bridge.",
    epilog=examples(
        "conversations list --agent claude",
        'conversations rename 12 "Login fails"',
        "conversations export 12 > login.md",
        "conversations delete 12",
    ),
)
Number = Annotated[int, Argument(metavar="ID", help="Its number; see `conversations list`.")]
Agent = Annotated[str | None, Option(help="Only those with this agent.")]
Repository = Annotated[
    str | None, Option(help="Only those there: OWNER/NAME, folder:/PATH or none.")
]
Limit = Annotated[int, Option(min=1, max=500, help="The most to list.")]


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
    archived: Annotated[bool, Option("--archived", help="Only archived ones.")] = False,
    as_json: Json = False,
) -> None:
    """List conversations, the one used last first."""
    _list(agent=agent, repository=repository, limit=limit, archived=archived, as_json=as_json)


@conversations.command("search")
def search(
    words: Annotated[list[str], Argument(help="What its titles or texts must have.")],
    agent: Agent = None,
    repository: Repository = None,
    limit: Limit = 50,
    *,
    as_json: Json = False,
) -> None:
    """Find conversations by words in their titles and texts, archived ones too."""
    _list(q=" ".join(words), agent=agent, repository=repository, limit=limit, as_json=as_json)


@conversations.command("latest")
def latest(
    agent: Annotated[str, Argument(metavar="AGENT", help="The name of the agent.")],
    *,
    as_json: Json = False,
) -> None:
    """Show the most recent conversation with an agent."""
    _list(agent=agent, limit=1, as_json=as_json)


@conversations.command("show")
def show(number: Number) -> None:
    """Show a whole conversation, as Markdown."""
    export(number)


@conversations.command("export")
def export(
    number: Number,
    form: Annotated[Form, Option("--format", help="How it is written.")] = Form.MARKDOWN,
) -> None:
    """Write a whole conversation to stdout."""
    text = Api().request("GET", f"/conversations/{number}/export", params={"format": form}).text
    sys.stdout.write(printable(text) if sys.stdout.isatty() else text)
    sys.stdout.flush()


@conversations.command("rename")
def rename(
    number: Number, title: Annotated[str, Argument(help="Agents do not change it.")]
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
        int | None, Option(min=1, help="The row of the transcript to fork after.")
    ] = None,
) -> None:
    """Copy a conversation into a new thread, all of it or up to a row."""
    where = {} if after is None else {"after": after}
    _tell(Api().post(ConversationOut, f"/conversations/{number}/fork", **where))


@conversations.command("clear")
def clear(number: Number, *, yes: Yes = False) -> None:
    """Delete what was said in a conversation; the files its agents work on stay."""
    api, path = Api(), f"/conversations/{number}"
    found = api.get(ConversationOut, path)
    confirm(
        f"Delete everything said in {one_line(found.title)!r}? Work in progress is stopped.",
        yes=yes,
        otherwise="nothing was cleared.",
    )
    _tell(api.send(ConversationOut, "POST", f"{path}/clear", timeout=REMOVAL))


@conversations.command("delete")
def delete(
    number: Number,
    *,
    discard: Annotated[
        bool, Option("--discard", help="Also delete work that is nowhere else.")
    ] = False,
    yes: Yes = False,
) -> None:
    """Delete a conversation with everything it left; shows what that is, and asks."""
    api, path = Api(), f"/conversations/{number}"
    found = api.get(ContentsOut, f"{path}/contents")
    for line in (
        f"{found.title}: {found.messages} messages, {found.turns} turns, "
        f"{found.schedules} schedules, {size_words(found.disk_bytes)} on disk",
        *(f"  file {name}" for name in found.files),
        *(
            f"! WORK THAT IS NOWHERE ELSE: {each.repository} {each.branch}: {each.held}"
            for each in found.unshipped
        ),
        *([f"  {found.posts} posts stay on the platform"] if found.posts else []),
    ):
        sys.stderr.write(f"{one_line(line)}\n")
    if found.unshipped and not discard:
        raise NotConfirmed(
            "it holds work that is nowhere else. Ship it, or delete it too with --discard."
        )
    confirm("Delete all of this? It cannot be undone.", yes=yes, otherwise="nothing was deleted.")
    api.request("DELETE", path, params={"discard": discard}, timeout=REMOVAL)
    sys.stderr.write("Deleted.\n")


def _list(*, as_json: bool, **query: str | int | None) -> None:
    show_list(
        Api().items(ConversationOut, "/conversations", **query),
        ("id", "agents", "where", "repository", "used", "title"),
        lambda each: (
            each.id,
            ", ".join(session.agent for session in each.sessions),
            *(each.service, each.repository, when(each.updated_at), _title(each)),
        ),
        as_json=as_json,
        nothing="No such conversations.",
    )


def _change(number: int, **what: str | bool) -> None:
    _tell(Api().send(ConversationOut, "PATCH", f"/conversations/{number}", json=what))


def _tell(found: ConversationOut) -> None:
    sys.stderr.write(f"{found.id}: {one_line(_title(found))} ({found.path})\n")


def _title(found: ConversationOut) -> str:
    return "".join(("* " * found.pinned, "(archived) " * found.archived, found.title))


sessions = add_group(COMMANDS, "sessions", "Show the work of agents in conversations.")


@sessions.command("list")
def list_sessions(
    agent: Annotated[str | None, Option(help="Only sessions of this agent.")] = None,
    state: Annotated[SessionState | None, Option(help="Only sessions in this state.")] = None,
    limit: Annotated[int, Option(min=1, max=500, help="The most sessions to list.")] = 50,
    *,
    as_json: Json = False,
) -> None:
    """List conversations, the one used last first."""
    configuration = read_configuration()
    if (bridge := find_bridge(configuration)) is not None:
        found = bridge.items(SessionOut, "/sessions", agent=agent, state=state, limit=limit)
    else:
        from app.terminal.stored import stored_sessions  # noqa: PLC0415 - 0.5 s that a bridge saves

        found = stored_sessions(configuration, agent=agent, state=state, limit=limit)
    show_list(
        found,
        ("id", "state", "agent", "thread", "used", "title"),
        lambda each: (
            *(each.id, each.state, each.agent, each.thread, when(each.updated_at), each.title),
        ),
        as_json=as_json,
        nothing=f"No such sessions. Start one with `{command_name()} ask`.",
    )


@sessions.command("show")
def show_session(
    session: Annotated[int, Argument(metavar="ID", help="Its number; see `sessions list`.")],
    *,
    as_json: Json = False,
) -> None:
    """Show a conversation: what was said and what was done."""
    configuration = read_configuration()
    if (bridge := find_bridge(configuration)) is not None:
        path = f"/sessions/{session}"
        found = bridge.get(SessionDetail, path)
        entries = bridge.all_items(EntryOut, f"{path}/transcript", after=0)
    else:
        from app.terminal.stored import stored_session  # noqa: PLC0415 - 0.5 s that a bridge saves

        found, entries = stored_session(configuration, session)
    if as_json:
        rows = [each.model_dump(mode="json") for each in entries]
        show_json({**found.model_dump(mode="json"), "transcript": rows})
        return
    head = f"Session {found.id} · {found.agent} · {found.state} · {when(found.updated_at)}"
    sys.stdout.write(f"{head}\n{one_line(found.title)}\n")
    for line in transcript_lines(entries, found.agent):
        sys.stdout.write(f"{line}\n")
