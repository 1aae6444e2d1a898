"""Rows of a thread, as tests write them and as hypothesis invents them."""

from __future__ import annotations

from itertools import count
from typing import Any

from hypothesis import strategies as st

from app.model.types import Entry
from app.server.page.view.render import Renderer
from app.server.page.view.roster import AgentView, PageRoster
from app.server.page.view.steps import STEPS
from app.server.page.view.thread import Fold
from app.services import label_of

AGENTS = {1: "claude", 2: "codex"}
ROSTER = PageRoster.of(
    [AgentView("claude", "claude", "Claude"), AgentView("codex", "codex", "Codex")], label_of
)
OPTIONS = [
    {"id": "allow", "name": "Allow once", "kind": "allow_once"},
    {"id": "reject", "name": "Reject", "kind": "reject_once"},
]


def fold(rows: list[Entry]) -> Fold:
    """Fold rows at once."""
    made = Fold(AGENTS.__getitem__)
    made.add(rows)
    return made


def shown(rows: list[Entry], steps: int = STEPS) -> str:
    """Render a thread as a page that is opened shows it."""
    return log(fold(rows), steps)


def log(folded: Fold, steps: int = STEPS) -> str:
    """Render a thread that is folded."""
    renderer = Renderer(ROSTER, "/t/web/t1", steps=steps)
    return "".join(map(renderer.block, folded.blocks))


class Story:
    """Writes rows one after another, a second apart."""

    def __init__(self) -> None:
        self.rows: list[Entry] = []
        self._ids = count(1)

    def row(self, kind: Any, text: str = "", /, *, turn: int | None = 1, **data: Any) -> Story:
        """Add a row of a turn; odd turns are Claude's."""
        number = next(self._ids)
        session = None if turn is None else 2 - turn % 2
        self.rows.append(
            Entry(kind, text, data=data, session=session, turn=turn, id=number, at=1000.0 + number)
        )
        return self

    def said(self, text: str, *to: str, speaker: str = "Ann", **data: Any) -> Story:
        """Add a message."""
        number = next(self._ids)
        data = {"files": [], "to": list(to), **data}
        entry = Entry("message", text, speaker, data, id=number, at=1000.0 + number)
        self.rows.append(entry)
        return self

    def tool(self, call: str, status: str = "completed", *, turn: int = 1, **more: Any) -> Story:
        """Add a state of a tool call."""
        data = {"call": call, "title": f"Call {call}", "kind": "read", "status": status, **more}
        return self.row("tool", data["title"], turn=turn, **data)

    def ask(self, number: int, title: str = "Write a.txt", *, turn: int = 1, **more: Any) -> Story:
        """Add an open ask."""
        data = {"ask": number, "state": "open", "options": OPTIONS, "call": "", **more}
        return self.row("ask", title, turn=turn, **data)

    def answer(self, number: int, *, turn: int = 1, state: str = "answered") -> Story:
        """Close an ask."""
        return self.row("ask", "Ann: Allow once", turn=turn, ask=number, state=state)


words = st.sampled_from(
    [
        "Hello ",
        "**bold",
        "** text\n\n",
        "```py\nx = 1\n",
        "```\n",
        "- a\n- b\n\n",
        "| a |\n|-|\n",
        "",
    ]
)
long_words = st.sampled_from(["word " * 400 + "\n\n", "```\n" + "code\n" * 900 + "```\n\n"])
kinds = st.sampled_from(["read", "search", "edit", "execute", None])
statuses = st.sampled_from(["pending", "in_progress", "completed", "failed"])


@st.composite
def stories(draw: st.DrawFn) -> list[Entry]:
    """Invent what two agents do in a few turns at once."""
    story = Story()
    asks: dict[int, int] = {}
    for _ in range(draw(st.integers(1, 30))):
        turn = draw(st.integers(1, 4))
        match draw(st.sampled_from(_STEPS)):
            case "said":
                story.said(draw(words), *draw(st.sets(st.sampled_from(["claude", "codex"]))))
            case "text" | "thought" as kind:
                parent = draw(st.none() | st.sampled_from("abz"))
                inner = {"parent": parent} if kind == "thought" and parent else {}
                story.row(kind, draw(words | long_words), turn=turn, **inner)
            case "tool":
                _call(draw, story, turn)
            case "plan":
                steps = [{"text": "a", "status": draw(st.sampled_from(_STEP_STATES))}]
                story.row("plan", turn=turn, steps=steps)
            case "ask":
                number = draw(st.integers(1, 3))
                turn = asks.setdefault(number, turn)
                story.ask(number, turn=turn, call=draw(st.sampled_from("ab")))
            case "answer" if asks:
                number = draw(st.sampled_from(sorted(asks)))
                story.answer(number, turn=asks[number])
            case "usage":
                cost = draw(st.none() | st.integers(0, 9))
                story.row("usage", turn=turn, used=5, size=10, cost=cost, currency="USD")
            case _:
                story.row("notice", draw(st.sampled_from(["", "Stopped."])), turn=turn)
    return story.rows


def _call(draw: st.DrawFn, story: Story, turn: int) -> None:
    call = draw(st.sampled_from("abcdef"))
    story.tool(
        call,
        draw(statuses),
        turn=turn,
        kind=draw(kinds),
        parent=draw(st.none() | st.sampled_from("abz")),
        output=draw(words),
        diffs=draw(st.just(None) | st.just([{"path": "a.py", "old": "a\n", "new": "b\n"}])),
    )


_STEPS = ["said", "text", "thought", "tool", "tool", "plan", "ask", "answer", "usage", "notice"]
_STEP_STATES = ["pending", "in_progress", "completed"]
