"""Exports a whole conversation as a file: as JSON, or as Markdown for people.

In Markdown, what people and agents said is quoted, fenced or on one line, so that none of it passes
for a heading, which says who speaks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final, Literal

from fastapi.responses import Response

from app.core.runtime import Runtime
from app.features.conversations.model import ConversationOut, ExportedEntry, ExportOut
from app.model import ask_wording as wording
from app.model.conversations import title_of
from app.model.text import reveal_line
from app.model.types import Entry, Thread
from app.model.wording import ASKED_AGENT, DELEGATED
from app.server.shapes import EntryOut
from app.services import label_of

ROWS: Final = 1_000
"""Rows per read of an export."""
_TICKS: Final = re.compile(r"`{3,}")
_DONE: Final = {"completed": "x"}
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9]+")


@dataclass(frozen=True, slots=True)
class Exported:
    """What an export says about its conversation."""

    title: str
    facts: tuple[tuple[str, str], ...]
    """What it is about: labels and values."""


async def export(runtime: Runtime, thread: Thread, form: Literal["json", "markdown"]) -> Response:
    """Answer with a whole conversation, as a file."""
    entries = await _read_all(runtime, thread)
    if form == "json":
        body, kind, ending = _write_json(runtime, thread, entries), "application/json", "json"
    else:
        body, kind, ending = _markdown(runtime, thread, entries), "text/markdown", "md"
    name = file_name(title_of(thread), ending)
    headers = {
        "Content-Disposition": f'attachment; filename="{name}"',
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
    }
    return Response(body, media_type=f"{kind}; charset=utf-8", headers=headers)


def _write_json(runtime: Runtime, thread: Thread, entries: list[Entry]) -> str:
    """Write a conversation as JSON."""
    rows = [
        ExportedEntry(**EntryOut.of(each).model_dump(), agent=_agent_of(runtime, each.session))
        for each in entries
    ]
    return ExportOut(
        conversation=ConversationOut.of(thread, runtime), transcript=rows
    ).model_dump_json(indent=2)


def _markdown(runtime: Runtime, thread: Thread, entries: list[Entry]) -> str:
    agents = dict.fromkeys(_title_of(runtime, each.key.agent) for each in thread.sessions)
    about = Exported(
        title_of(thread),
        (
            ("Where", label_of(thread.place.service)),
            ("Link", thread.link),
            ("Agents", ", ".join(agents)),
            ("Repository", thread.repository),
        ),
    )
    return write_markdown(about, entries, lambda session: _name_of(runtime, session))


def _agent_of(runtime: Runtime, session_id: int | None) -> str | None:
    session = None if session_id is None else runtime.stores.sessions.session(session_id)
    return None if session is None else runtime.agents.name(session.key.agent)


def _name_of(runtime: Runtime, session_id: int) -> str:
    session = runtime.stores.sessions.session(session_id)
    return "" if session is None else _title_of(runtime, session.key.agent)


def _title_of(runtime: Runtime, agent: str) -> str:
    card = runtime.agents.get(agent)
    return runtime.agents.name(agent) if card is None else card.display_name


async def _read_all(runtime: Runtime, thread: Thread) -> list[Entry]:
    """Read a conversation; what agents did for others is one line each."""
    found: list[Entry] = []
    last = 0
    while rows := await runtime.stores.transcript.read_tree(thread.place, after=last, limit=ROWS):
        found += filter(None, (_own_row(runtime, thread, row) for row in rows))
        last = rows[-1].id
    return found


def _own_row(runtime: Runtime, thread: Thread, row: Entry) -> Entry | None:
    """Return a row as an export of its conversation has it; None if it has it not."""
    session = None if row.session is None else runtime.stores.sessions.session(row.session)
    if session is None or session.place == thread.place:
        return row
    branch = runtime.stores.tree.of_turn(row.turn or 0)
    if row.kind != "message" or branch is None:
        return None
    asked = ASKED_AGENT.format(agent=_title_of(runtime, branch.agent))
    words = f"{asked}: {reveal_line(branch.task)} · {DELEGATED[branch.state]}"
    data = {"delegation": branch.id, "session": branch.session}
    return replace(
        row,
        kind="notice",
        text=words,
        speaker="",
        data=data,
        session=branch.caller_session,
        turn=branch.caller_turn,
    )


def file_name(title: str, ending: str) -> str:
    """Name the file of an export."""
    return f"{_UNSAFE.sub('-', title).strip('-')[:60] or 'conversation'}.{ending}"


def write_markdown(about: Exported, entries: Sequence[Entry], name_of: Callable[[int], str]) -> str:
    """Write a conversation; `name_of` returns the agent of a session, as people call it."""
    facts = [f"- {label}: {reveal_line(value)}" for label, value in about.facts if value]
    head = [f"# {reveal_line(about.title)}", "\n".join(facts)]
    return "\n\n".join([*filter(None, head), *_Writer(entries, name_of).parts()]) + "\n"


class _Writer:
    """Writes the entries; a heading wherever another one speaks."""

    def __init__(self, entries: Sequence[Entry], name_of: Callable[[int], str]) -> None:
        self._entries = entries
        self._name_of = name_of
        self._last = {_call(each): each for each in entries if each.kind == "tool"}
        self._told: set[tuple[int | None, str]] = set()

    def parts(self) -> Iterator[str]:
        speaker: tuple[str, int | None] | None = None
        words: list[str] = []
        for entry in self._entries:
            if entry.kind == "text" and (self._speaker(entry), entry.turn) == speaker:
                words.append(entry.text)
                continue
            shown = list(self._blocks(entry))
            if not shown:
                continue
            if words:
                yield _quoted("".join(words))
                words = []
            now = (self._speaker(entry), entry.turn)
            if now != speaker:
                yield f"## {reveal_line(now[0])} · {_time(entry.at)}"
                speaker = now
            if entry.kind == "text":
                words = [entry.text]
            else:
                yield from shown
        if words:
            yield _quoted("".join(words))

    def _speaker(self, entry: Entry) -> str:
        if entry.kind == "message":
            return entry.speaker
        return "Agent Bridge" if entry.session is None else self._name_of(entry.session)

    def _blocks(self, entry: Entry) -> Iterator[str]:
        match entry.kind:
            case "message":
                yield _quoted(entry.text)
                yield from (f"- Attached: {reveal_line(each['name'])}" for each in _files(entry))
            case "text" if entry.text:
                yield entry.text
            case "thought" if entry.text.strip():
                yield f"*Thought:*\n\n{_quoted(entry.text)}"
            case "tool" if _call(entry) not in self._told:
                self._told.add(_call(entry))
                yield from _tool(self._last[_call(entry)])
            case "plan":
                steps = entry.data.get("steps") or ()
                lines = [
                    f"- [{_DONE.get(each['status'], ' ')}] {reveal_line(each['text'])}"
                    for each in steps
                ]
                yield "\n".join(["*Plan:*", "", *lines])
            case "ask":
                label = "Asked" if entry.data.get("state") == "open" else "Outcome"
                yield f"**{label}:** {reveal_line(entry.text)}"
            case "notice" if entry.text:
                yield f"*Notice:*\n\n{_quoted(entry.text)}"
                yield from (f"- File: {reveal_line(each['name'])}" for each in _files(entry))


def _tool(entry: Entry) -> Iterator[str]:
    """Write a call as it ended: what it was given, what came of it, and who allowed it."""
    data = entry.data
    decided = wording.decision(data.get("decided"))
    state = data.get("status") or "pending"
    notes = ", ".join(filter(None, (state, decided)))
    title = entry.text or data.get("kind") or "call"
    yield f"**Tool:** {reveal_line(f'{title} ({notes})')}"
    given = data.get("input")
    if given:
        shown = given if isinstance(given, str) else json.dumps(given, indent=2, ensure_ascii=False)
        yield _fenced(shown)
    for diff in data.get("diffs") or ():
        yield _fenced(f"{diff.get('path', '')}\n{diff.get('new') or ''}")
    if data.get("output"):
        yield _fenced(str(data["output"]))


def _files(entry: Entry) -> Sequence[Mapping[str, Any]]:
    return [each for each in entry.data.get("files") or () if each.get("name")]


def _call(entry: Entry) -> tuple[int | None, str]:
    return entry.turn, str(entry.data.get("call"))


def _quoted(text: str) -> str:
    """Quote every line of a text, whatever ends it."""
    return "\n".join(f"> {line}".rstrip() for line in text.strip().splitlines())


def _fenced(text: str) -> str:
    """Put a text into a fence that nothing in it closes."""
    longest = max((len(each) for each in _TICKS.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}\n{text.rstrip()}\n{fence}"


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")
