"""What an edit or a deletion makes of what was said; a review is one message of many pieces."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.errors import PostDelayed
from app.model.inbound import Changed
from sim.github.answers import Reply
from sim.github.state import Comment, Issue, new_number
from tests.support.github_desk import Desk

pytestmark = pytest.mark.anyio


def reviewed(
    desk: Desk, by: str, *words: str, body: str | None = None
) -> tuple[Issue, list[Comment]]:
    """Let Ann review a pull request of somebody, a comment on each of its lines."""
    desk.github.git.commit("acme/widgets", "topic", {"a.py": "one\ntwo\nthree\n"}, "Change")
    pull = desk.github.open_pull(by, desk.repository, "A change", "topic")
    lines = [("a.py", line, said) for line, said in enumerate(words, 1)]
    desk.github.review("ann", pull, body, *lines)
    desk.events("claude"), desk.events("codex")
    assert pull.pull is not None
    return pull, list(pull.pull.comments)


async def told(desk: Desk, agent: str = "claude") -> list[Changed]:
    """List what an agent's App says that changed."""
    adapter = desk.adapters[agent]
    found = [adapter.parse(desk.delivery(each, agent)) for each in desk.events(agent)]
    whole = [await adapter.reread(each) for each in found if isinstance(each, Changed)]
    return [each for each in whole if each is not None]


async def test_an_edited_comment_on_a_line_changes_its_whole_review(desk: Desk) -> None:
    words = ("rename it", "@codex-bridge and @claude-bridge, drop this")
    pull, (first, _) = reviewed(desk, "bob", *words, body="Two things.")

    desk.github.edit_comment("ann", pull, first, "delete it<!-- and all else -->")

    (changed,) = await told(desk, "codex")
    assert (changed.message_id, changed.external) == (f"review-{first.review}", "acme/widgets:1")
    assert changed.speaker.name == "ann"
    assert changed.text == (
        "Two things.\n\n`a.py`, line 1:\ndelete it\n\n"
        "`a.py`, line 2:\n@codex-bridge and @claude-bridge, drop this"
    )
    assert await told(desk, "claude") == [], "of two agents one tells it"


async def test_a_deleted_comment_leaves_the_rest_of_its_review_or_nothing(desk: Desk) -> None:
    pull, (first, second) = reviewed(desk, "claude-bridge[bot]", "rename it", "drop this")

    desk.github.delete_comment("cleo", pull, first)
    (rest,) = await told(desk)
    assert await told(desk, "codex") == []
    desk.github.delete_comment("ann", pull, second)
    (nothing,) = await told(desk)

    assert rest.text == "`a.py`, line 2:\ndrop this"
    assert nothing.text is None
    assert rest.speaker.name == nothing.speaker.name == "ann", "whoever deleted them"


async def test_nobody_else_changes_the_words_of_a_review(desk: Desk) -> None:
    pull, (first,) = reviewed(desk, "claude-bridge[bot]", "rename it")

    desk.github.edit_comment("cleo", pull, first, "delete everything")

    assert await told(desk) == []


async def test_a_review_that_cannot_be_read_is_no_guess(desk: Desk) -> None:
    pull, (first,) = reviewed(desk, "claude-bridge[bot]", "rename it")
    desk.github.edit_comment("ann", pull, first, "delete it")
    limited = Reply(403, {"message": "rate limit"}, {"retry-after": "60"})
    desk.github.fail("GET", "/reviews/", limited)

    with pytest.raises(PostDelayed):
        await told(desk)


async def test_a_review_is_heard_whole_although_github_hesitates(desk: Desk) -> None:
    lines = ("rename it", "drop this")
    pull, _ = reviewed(desk, "claude-bridge[bot]")
    desk.github.review("ann", pull, None, *(("a.py", 1, each) for each in lines))
    desk.github.fail("GET", "/reviews/", Reply(502, {"message": "Server Error"}))

    (heard,) = await desk.heard()

    assert [each in heard.text for each in lines] == [True, True]


async def test_a_review_with_more_comments_than_a_page_holds_is_read_whole(desk: Desk) -> None:
    pull, (first,) = reviewed(desk, "claude-bridge[bot]", "look 0")
    assert pull.pull is not None
    more = [replace(first, id=new_number(), body=f"look {number}") for number in range(1, 120)]
    pull.pull.comments += more
    desk.github.edit_comment("ann", pull, first, "look at 0")

    (changed,) = await told(desk)

    assert changed.text is not None
    assert changed.text.count("look ") == 120
