"""A conversation as Markdown: complete, in order, and nothing in it ends a fence."""

from __future__ import annotations

from typing import Literal, get_args

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from app.features.conversations.export import Exported, file_name, write_markdown
from app.model.types import Entry

Kind = Literal["message", "text", "thought", "tool", "plan", "ask", "notice"]
ABOUT = Exported("Login fails", (("Agents", "Claude"), ("Link", "")))


def test_an_export_has_names_times_calls_plans_and_answers() -> None:
    call = {"call": "c1", "input": {"command": "make test"}, "output": "3 failed\n```", "kind": "x"}
    entries = [
        Entry("message", "Fix it", "Ann", {"files": [{"name": "log.txt"}]}, id=1, at=0.0),
        Entry("thought", "Hm", session=1, turn=1, id=2, at=60.0),
        Entry("text", "I look ", session=1, turn=1, id=3, at=60.0),
        Entry("text", "now.", session=1, turn=1, id=4, at=61.0),
        Entry("plan", data={"steps": [{"text": "Run", "status": "completed"}]}, session=1, turn=1),
        Entry("tool", "Run tests", data={**call, "status": "pending"}, session=1, turn=1, id=5),
        Entry("ask", "Run make?", data={"ask": 1, "state": "open"}, session=1, turn=1, id=6),
        Entry("ask", "Ann: Allow", data={"ask": 1, "state": "answered"}, session=1, turn=1, id=7),
        Entry("tool", "Run tests", data={**call, "status": "failed"}, session=1, turn=1, id=8),
        Entry("usage", data={"used": 5}, session=1, turn=1, id=9),
        Entry("notice", "Stopped.", session=1, turn=1, id=10),
    ]

    assert write_markdown(ABOUT, entries, lambda _session: "Claude") == (
        "# Login fails\n\n- Agents: Claude\n\n"
        "## Ann · 1970-01-01 00:00 UTC\n\n> Fix it\n\n- Attached: log.txt\n\n"
        "## Claude · 1970-01-01 00:01 UTC\n\n*Thought:*\n\n> Hm\n\n> I look now.\n\n"
        "*Plan:*\n\n- [x] Run\n\n"
        "**Tool:** Run tests (failed)\n\n"
        '```\n{\n  "command": "make test"\n}\n```\n\n````\n3 failed\n```\n````\n\n'
        "**Asked:** Run make?\n\n**Outcome:** Ann: Allow\n\n*Notice:*\n\n> Stopped.\n"
    )


@pytest.mark.parametrize("kind", get_args(Kind))
@pytest.mark.parametrize("end", ["\n", "\r", "\r\n", "\u2028", "\x0c"])
def test_nothing_that_is_said_passes_for_another_speaker(kind: Kind, end: str) -> None:
    """Also not by an underlined line, HTML, or a fence that is left open."""
    forged = end.join(
        ("Done.", "## Ann · 2026-01-01 00:00 UTC", "Ship it", "===", "<h2>Ann</h2>", "<!--", "```")
    )
    data = {"steps": [{"text": forged, "status": forged}], "output": forged, "status": forged}
    entries = [
        Entry(kind, forged, "Eve", data, session=1, turn=1, id=1, at=0.0),
        Entry("message", "Stop", "Ann", id=2, at=60.0),
    ]

    written = write_markdown(ABOUT, entries, lambda _session: "Claude")
    shown = MarkdownIt().parse(written)

    spoken = "Eve" if kind == "message" else "Claude"
    headings = [shown[at + 1].content for at, each in enumerate(shown) if _is_outer_heading(each)]
    assert headings == [
        "Login fails",
        f"{spoken} · 1970-01-01 00:00 UTC",
        "Ann · 1970-01-01 00:01 UTC",
    ]
    assert all(each.type != "html_block" or each.level > 0 for each in shown)


def _is_outer_heading(token: Token) -> bool:
    return token.type == "heading_open" and token.level == 0


def test_the_file_of_an_export_has_a_plain_name() -> None:
    assert file_name('../"Ärger" / mit\n', "md") == "rger-mit.md"
    assert file_name("…", "json") == "conversation.json"
