"""Stories of files on Linear: attachments reach the agent, what it makes is in its response."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.linear import LinearWorld

pytestmark = pytest.mark.one_database

PNG = b"\x89PNG\r\n\x1a\n a door"


def test_what_is_attached_to_an_issue_reaches_the_agent(tmp_path: Path) -> None:
    with LinearWorld(tmp_path) as world:
        picture = world.linear.upload("door", PNG).partition("(")[2].removesuffix(")")
        issue = world.linear.issue("Look", "say seen", by=world.ann)
        issue.attachments = {"Design": "https://figma.example/1", "door.png": picture}
        session = world.linear.delegate(issue, world.app, world.ann)
        world.wait_end(session)

        (brought,) = world.bridge.data_dir.glob("workspaces/*.files/*/door.png")
        [(prompt,)] = world.bridge.rows("select prompt from turn")

    assert brought.read_bytes() == PNG
    assert f"[Attached: {brought}]" in prompt
    assert "- Design: https://figma.example/1" in prompt.partition("</data>")[0]
    assert world.linear.faults == []


def test_what_an_agent_makes_stands_in_its_response(tmp_path: Path) -> None:
    with LinearWorld(tmp_path) as world:
        session = world.assign("give report.md All is well.", "say made it")
        world.wait_end(session)

    [(path, content)] = world.linear.uploads.items()
    assert content == b"All is well.\n"
    assert session.response.endswith(
        f"made it\n\n[report.md](https://uploads.linear.app/{path}) (13 bytes)"
    )
    assert len(session.of_type("response")) == 1
    assert world.linear.faults == []
