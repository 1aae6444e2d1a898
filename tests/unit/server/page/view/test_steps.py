"""Which steps of a long turn are shown at first."""

from __future__ import annotations

from app.server.page.view.steps import FAILURES, STEP_CHARACTERS, split
from tests.support.threads import Story, fold


def names(story: Story, limit: int = 3) -> tuple[list[str], list[str], int]:
    """Tell what is hidden, what is shown, and how many calls are hidden."""
    body = fold(story.rows).within("t1-body")
    assert body is not None
    parted = split(body, limit)
    hidden, shown = ([each.id for each in blocks] for blocks in (parted.earlier, parted.shown))
    return hidden, shown, parted.calls


def calls(story: Story, number: int, status: str = "completed") -> Story:
    for _ in range(number):
        story.tool(f"{len(story.rows)}", status, kind="edit")
    return story


def test_the_last_calls_are_shown_and_the_words_before_them_are_hidden_with_the_others() -> None:
    story = calls(calls(Story().row("text", "First."), 2).row("text", "Then."), 3)

    assert names(story) == (["w1", "c2", "c3", "w4"], ["c5", "c6", "c7"], 2)


def test_words_alone_are_nothing_to_fetch() -> None:
    assert names(calls(Story().row("text", "First."), 3))[0] == []


def test_what_failed_runs_or_is_asked_stays_and_failures_are_not_without_end() -> None:
    story = calls(Story(), 1, "in_progress").ask(1).row("plan", steps=[])
    calls(calls(story, FAILURES + 2, "failed"), 3)

    hidden, shown, count = names(story)

    assert shown[:3] == ["c1", "a1", "t1-plan"]
    assert (hidden, count) == (["c4", "c5"], 2)


def test_a_long_text_counts_as_steps() -> None:
    story = Story()
    for _ in range(9):
        story.row("text", "word " * (STEP_CHARACTERS // 5) + "\n\n")

    hidden, shown, count = names(story)

    assert (bool(hidden), bool(shown), count) == (True, True, 0)
