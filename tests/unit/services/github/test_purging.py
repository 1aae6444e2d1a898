"""Purging on GitHub: the agent's comments go with their history, others are named."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.model.posts import PostContent, PostSend
from app.vault.octets import vault_of
from sim.github.state import Issue
from tests.support.github_desk import Desk

pytestmark = pytest.mark.anyio

LEAKED = "zq7-Pelican-4411-secret"


def turn(desk: Desk, issue: Issue, text: str, state: str = "working") -> PostSend:
    content = PostContent(kind="turn", state=state, text=text)
    return PostSend("create", desk.key(issue), "ab-one", content)


def everything(issue: Issue) -> str:
    """Read all that GitHub shows of an issue, with the history of edits."""
    return repr([issue.title, issue.body, issue.comments])


async def test_own_comments_go_with_their_history_and_others_are_named(desk: Desk) -> None:
    issue = desk.github.open_issue("ann", desk.repository, "Bug")
    said = desk.github.comment("ann", issue, f"Use {LEAKED} here")
    working = replace(turn(desk, issue, f"with {LEAKED}"), remote_id="seen-1", op="replace")
    shown = await desk.claude.send(working)
    done = turn(desk, issue, f"Done with {LEAKED}, as asked.", "done")
    await desk.claude.send(replace(done, op="finish", remote_id=shown.remote_id))
    assert everything(issue).count(LEAKED) > 2

    cleaned = await desk.claude.purge(desk.key(issue), vault_of(LEAKED))

    (theirs, answer) = issue.comments
    assert cleaned.changed == 2
    assert [link.rpartition("-")[2] for link in cleaned.left] == [str(said.id)]
    assert theirs is said
    assert answer.body.startswith("Done with [secret], as asked.")
    assert everything(issue).count(LEAKED) == 1
    again = await desk.claude.purge(desk.key(issue), vault_of(LEAKED))
    assert (again.changed, again.left) == (0, cleaned.left)
