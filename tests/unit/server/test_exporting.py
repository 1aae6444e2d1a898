"""A conversation as Markdown: complete, in order, and nothing in it ends a fence."""

from __future__ import annotations

from app.core.types import Entry
from app.server.exporting import Exported, file_name, write_markdown

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
        "## Ann · 1970-01-01 00:00 UTC\n\nFix it\n\n- Attached: log.txt\n\n"
        "## Claude · 1970-01-01 00:01 UTC\n\n> *Thought:* Hm\n\nI look now.\n\n"
        "*Plan:*\n\n- [x] Run\n\n"
        "**Tool:** Run tests (failed)\n\n"
        '```\n{\n  "command": "make test"\n}\n```\n\n````\n3 failed\n```\n````\n\n'
        "**Asked:** Run make?\n\n**Outcome:** Ann: Allow\n\n> Stopped.\n"
    )


def test_the_file_of_an_export_has_a_plain_name() -> None:
    assert file_name('../"Ärger" / mit\n', "md") == "rger-mit.md"
    assert file_name("…", "json") == "conversation.json"
