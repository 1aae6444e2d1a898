"""Folding rows into blocks: the same whatever came when, quick, and nothing shown twice."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.feed import Unfinished
from app.model.types import Entry
from app.server.page.stream import Patches
from app.server.page.view.blocks import (
    Batch,
    CallBlock,
    HeadBlock,
    Plan,
    QuestionBlock,
    SaidBlock,
    Silence,
    TurnBlock,
    WordsBlock,
)
from app.server.page.view.render import Renderer
from app.server.page.view.steps import STEPS
from app.server.page.view.thread import PREVIEW_CHARACTERS, Fold
from app.server.page.view.turns import BATCH_CALLS
from tests.support.document import Document
from tests.support.threads import AGENTS, ROSTER, Story, fold, log, shown, stories


def body(rows: list[Entry], number: int = -1) -> list[Any]:
    turn = fold(rows).blocks[number]
    assert isinstance(turn, TurnBlock)
    return turn.body


def page(rows: list[Entry], steps: int = STEPS) -> tuple[Patches, Document]:
    folded = fold(rows)
    renderer = Renderer(ROSTER, "/t/web/t1", steps=steps)
    return Patches(folded, renderer), Document(log(folded, steps))


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(stories(), st.data())
def test_rows_in_any_batches_show_what_all_rows_at_once_show(
    rows: list[Entry], data: st.DataObject
) -> None:
    opened = data.draw(st.integers(0, len(rows)))
    steps = data.draw(st.sampled_from([1, 2, STEPS]))
    patches, document = page(rows[:opened], steps)

    while opened < len(rows):
        size = data.draw(st.integers(1, 5))
        news = data.draw(unfinished_of(rows[opened:]))
        document.take_live(patches.unfinished(news))
        document.take(patches.rows(rows[opened : opened + size]))
        opened += size
    document.lose_connection()

    assert document.html() == Document(shown(rows, steps)).html()


def unfinished_of(rows: list[Entry]) -> st.SearchStrategy[list[Unfinished]]:
    """Invent words that come before the next row of words of a turn."""
    following = {
        row.turn: Unfinished(row.session or 0, row.turn or 0, row.kind, row.text[:5])
        for row in reversed(rows)
        if (row.kind == "text" or row.kind == "thought") and row.turn is not None
    }
    return st.lists(st.sampled_from([*following.values(), None]), max_size=2).map(
        lambda drawn: [each for each in drawn if each is not None]
    )


@settings(max_examples=30, deadline=None)
@given(stories(), st.data())
def test_a_page_that_comes_back_goes_on_where_it_was(
    rows: list[Entry], data: st.DataObject
) -> None:
    lost = data.draw(st.integers(0, len(rows)))
    _, document = page(rows[:lost])

    again, _ = page(rows[:lost])
    document.take(again.rows(rows[lost:]))

    assert document.html() == Document(shown(rows)).html()


def test_one_article_per_turn_however_two_agents_interleave() -> None:
    story = Story().said("go", "claude", "codex")
    rows = story.row("text", "a", turn=1).row("text", "b", turn=2).row("text", "c", turn=1).rows

    blocks = fold(rows).blocks

    assert [type(block) for block in blocks] == [SaidBlock, TurnBlock, TurnBlock]
    assert [block.agent for block in blocks if isinstance(block, TurnBlock)] == ["claude", "codex"]
    assert [block.text for block in body(rows, 1)] == ["ac"]


def test_words_are_joined_until_something_else_happens() -> None:
    story = Story().row("text", "one ").row("text", "two").tool("a").row("text", "three")

    assert [type(block) for block in body(story.rows)] == [WordsBlock, Batch, WordsBlock]
    assert body(story.rows)[0].text == "one two"


def test_the_words_of_a_sub_agent_are_under_the_call_that_started_it() -> None:
    story = (
        Story().tool("task", "in_progress", kind="think").row("thought", "I look", parent="task")
    )
    story.row("thought", " around.", parent="task").tool("r", parent="task")
    rows = story.row("thought", "Found.", parent="task").row("text", "Done.").rows

    batch, answer = body(rows)

    [task] = batch.calls
    assert [getattr(each, "text", "call") for each in task.inside] == [
        "I look around.",
        "call",
        "Found.",
    ]
    assert (answer.kind, answer.text) == ("text", "Done.")


def test_the_words_of_a_sub_agent_whose_call_is_not_shown_are_a_thought() -> None:
    rows = Story().row("thought", "I look", parent="task").rows

    [words] = body(rows)

    assert (words.kind, words.text) == ("thought", "I look")


def test_words_after_a_changed_plan_begin_anew() -> None:
    story = Story().row("plan", steps=[]).row("text", "one.").row("plan", steps=[{"text": "x"}])
    rows = story.row("text", "Two.").rows

    assert [type(block) for block in body(rows)] == [Plan, WordsBlock, WordsBlock]


def test_a_long_answer_is_cut_between_its_blocks_and_reads_the_same() -> None:
    paragraph = "All work and no play. " * 20 + "\n\n"
    rows = [row for _ in range(60) for row in Story().row("text", paragraph).rows]
    rows = [Entry("text", r.text, session=1, turn=1, id=n, at=1.0) for n, r in enumerate(rows, 1)]

    pieces = body(rows)

    assert len(pieces) > 3
    assert "".join(piece.text for piece in pieces) == paragraph * 60
    assert max(len(piece.text) for piece in pieces) < 8_000


def test_a_row_changes_only_the_piece_it_is_added_to() -> None:
    story = Story()
    for _ in range(60):
        story.row("text", "All work and no play. " * 20 + "\n\n")
    folded = fold(story.rows)

    changed = folded.add(Story().row("text", "more").rows[-1:])

    assert [type(block) for block in changed] == [WordsBlock, HeadBlock]


def test_a_tool_call_is_one_card_with_its_last_state() -> None:
    rows = Story().tool("a", "pending", kind="edit").tool("a", "completed", kind="edit").rows

    (card,) = body(rows)

    assert isinstance(card, CallBlock)
    assert card.data["status"] == "completed"


def test_harmless_calls_in_a_row_are_shown_together() -> None:
    story = Story()
    for number in range(3):
        story.tool(f"r{number}")
    story.tool("e", kind="edit").tool("s", kind="search")

    batch, edit, search = body(story.rows)

    assert [call.data["call"] for call in batch.calls] == ["r0", "r1", "r2"]
    assert isinstance(edit, CallBlock)
    assert isinstance(search, Batch)


def test_a_thousand_calls_change_little_at_a_time() -> None:
    story = Story()
    for number in range(1000):
        story.tool(f"r{number}")
    folded = fold(story.rows[:-1])

    changed = folded.add(story.rows[-1:])

    assert {type(block).__name__ for block in changed} <= {"Batch", "HeadBlock"}
    assert max(len(batch.calls) for batch in body(story.rows)) == BATCH_CALLS


def test_the_calls_of_a_sub_agent_are_inside_the_call_that_started_it() -> None:
    story = Story().tool("task", "in_progress", kind="think")
    rows = story.tool("r1", parent="task").tool("r2", parent="task").tool("w", kind="edit").rows

    outer, edit = body(rows)
    (inner,) = outer.calls[0].inside

    assert [call.data["call"] for call in inner.calls] == ["r1", "r2"]
    assert isinstance(edit, CallBlock)


def test_an_ask_is_open_until_somebody_answers() -> None:
    story = Story().tool("a", "pending", kind="edit").ask(5, call="a")
    card, question = body(story.rows)
    assert isinstance(question, QuestionBlock)
    assert (question.state, card.decided) == ("open", "")

    card, question = body(story.answer(5).rows)

    assert (question.state, question.note) == ("answered", "Ann: Allow once")
    assert card.decided == "Ann: Allow once"


@pytest.mark.parametrize(
    ("decided", "words"),
    [
        ({"how": "person", "who": "Ann", "answer": "x", "allowed": True}, "allowed by Ann"),
        ({"how": "rule", "rule": "allow kind edit", "allowed": True}, "allowed by rule `allow"),
        ({"how": "rule", "rule": "deny kind edit", "allowed": False}, "rejected by rule `deny"),
        ({"how": "not asked"}, ""),
    ],
)
def test_a_card_says_who_or_what_decided(decided: dict[str, object], words: str) -> None:
    story = Story().tool("a", "pending", kind="edit").tool("a", kind="edit", decided=decided)

    (card,) = body(story.rows)

    assert isinstance(card, CallBlock)
    assert card.decided.startswith(words)


def test_a_call_that_never_ended_is_stopped_when_its_turn_is_over() -> None:
    running = Story().tool("a", "in_progress", kind="execute").rows
    ended = Story().tool("a", "in_progress", kind="execute").row("notice", "Stopped.", end="x").rows
    followed = Story().tool("a", "in_progress", kind="execute").row("text", "b", turn=3).rows

    assert [body(rows, 0)[0].stopped for rows in (running, ended, followed)] == [False, True, True]


@pytest.mark.parametrize("data", [{"state": "mode", "value": "x"}, {"unknown": "y", "raw": {}}])
def test_what_is_for_machines_is_not_shown(data: dict[str, Any]) -> None:
    assert fold(Story().row("notice", **data).rows).blocks == []


def test_why_nobody_answers_is_shown_where_it_was_asked() -> None:
    rows = Story().said("hello?").row("notice", "Nobody answers: x.", turn=None, silence="x").rows

    _, note = fold(rows).blocks

    assert isinstance(note, Silence)
    assert (note.message, note.over) == (rows[0].id, False)


def test_a_turn_takes_from_its_message_to_its_last_row() -> None:
    story = Story().said("go", "claude").row("text", "a").row("text", "b").said("more", "claude")
    story.row("text", "c").row("text", "d", turn=3)

    first, second = (b.head for b in fold(story.rows).blocks if isinstance(b, TurnBlock))

    assert first.ended - first.began == 4
    assert second.ended - second.began == 1


def test_the_cost_of_a_turn_is_what_was_added_in_it() -> None:
    story = Story().row("usage", cost=0.25).row("text", "a", turn=3)
    story.row("usage", cost=0.75, turn=3).row("usage", cost=0.1, turn=5)

    heads = [block.head for block in fold(story.rows).blocks if isinstance(block, TurnBlock)]

    assert [head.cost for head in heads] == [0.25, 0.5, 0.1]


def test_a_thread_that_is_read_from_its_middle_does_not_guess_costs() -> None:
    part = Fold(AGENTS.__getitem__, whole=False)

    part.add(Story().row("usage", cost=5.0).rows)

    (turn,) = part.blocks
    assert isinstance(turn, TurnBlock)
    assert turn.head.cost is None


def test_unfinished_words_stand_where_their_row_will_stand() -> None:
    patches, document = page(Story().row("text", "Hello ").rows)

    document.take_live(patches.unfinished([Unfinished(1, 1, "text", "wor")]))

    assert "Hello wor" in document.log.text
    document.take(patches.rows(Story().row("text", "Hello ").row("text", "world").rows[1:]))
    assert document.log.text.count("Hello world") == 1


def test_unfinished_words_without_a_row_are_taken_back() -> None:
    patches, document = page(Story().row("text", "Hello ").rows)
    before = document.html()

    document.take_live(patches.unfinished([Unfinished(1, 1, "text", "wor")]))
    document.take_live(patches.unfinished([Unfinished(2, 2, "thought", "hm")]))
    document.lose_connection()

    assert document.html() == before


def test_very_long_words_wait_for_their_row() -> None:
    patches, _ = page(Story().row("text", "x" * PREVIEW_CHARACTERS).rows)

    assert patches.unfinished([Unfinished(1, 1, "text", "y")]) == []
