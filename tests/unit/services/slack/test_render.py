"""How posts look on Slack."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.model.posts import DelegatedLine, Fact, Outcome, PostContent, ToolLine
from app.model.updates import AskOption, PlanStep
from app.services.slack import cards, render
from app.services.slack import text as texts
from app.services.slack.people import Seal
from sim.slack.blocks import block_words, buttons, check_blocks, lists

BUSY = PostContent(
    kind="turn",
    state="working",
    text="Looking.",
    plan=(PlanStep("read", "completed"), PlanStep("write <it>", "in_progress")),
    tools=(ToolLine("t1", "cat a.py", "completed", output="print()"), ToolLine("t2", "ls")),
    thought="Maybe the parser.",
)


def seal(*values: str | int) -> str:
    return ".".join(map(str, values))


def words(blocks: list[dict[str, Any]]) -> str:
    return "\n".join(block_words(blocks))


@pytest.mark.parametrize(
    "text",
    [
        "<!channel>",
        "<!here>",
        "<!everyone|x>",
        "<!group>",
        "<!subteam^S1>",
        "<@U123ABC>",
        "<@W1|x>",
    ],
)
def test_what_would_ring_people_is_made_harmless(text: str) -> None:
    assert text not in texts.defang(f"see {text} now")
    assert texts.defang(f"see {text} now").replace("\u2060", "") == f"see {text} now"


@pytest.mark.parametrize("text", ["<!-- a -->", "<!DOCTYPE html>", "List<@NotNull T>", "a < b"])
def test_code_stays_as_it_is(text: str) -> None:
    assert texts.defang(text) == text


@given(st.text(alphabet="<!@>channelhereUW1 ", max_size=60), st.integers(0, 60))
def test_a_mention_is_harmless_also_when_it_comes_in_two_pieces(text: str, cut: int) -> None:
    first = text[:cut]
    end = texts.safe_end(first)

    shown = texts.defang(text[:end]) + texts.defang(text[end:])

    assert texts.RINGING.search(shown) is None


@given(st.text(alphabet="ab`~\n ", max_size=300), st.integers(20, 80))
def test_pieces_together_hold_every_character_in_order(text: str, size: int) -> None:
    cuts, start = [], 0
    while (end := texts.part_end(text, start, start, size)) is not None:
        cuts.append(text[start:end])
        start = end
    cuts.append(text[start:])

    assert "".join(cuts) == text
    assert all(0 < len(cut) <= size for cut in cuts[:-1])


def test_a_code_block_that_is_cut_is_closed_and_opened_again() -> None:
    text = "before\n```python\na = 1\nb = 2\n```\nafter"
    middle = text.index("b = 2")

    assert texts.piece(text, 0, middle) == "before\n```python\na = 1\n```\n"
    assert texts.piece(text, middle, None) == "```python\nb = 2\n```\nafter"


def test_a_code_block_with_a_shorter_fence_in_it_ends_at_its_own() -> None:
    text = "````md\n```python\na = 1\n```\nb\n````\nafter"
    middle = text.index("b\n")

    assert texts.piece(text, 0, middle).endswith("```\n````\n")
    assert texts.piece(text, middle, None) == "````md\nb\n````\nafter"


def test_where_there_is_no_room_for_all_tools_the_latest_are_shown() -> None:
    tools = tuple(ToolLine(f"t{number}", f"{number:02d} & {'x' * 400}") for number in range(20))
    content = PostContent(kind="turn", state="working", tools=tools)

    blocks = render.progress(content, 0, "normal", seal=seal)

    check_blocks(blocks)
    assert "19 & x" in words(blocks)
    assert "00 & x" not in words(blocks)
    assert words(blocks).splitlines()[:2] == ["Working", "8 earlier"]


def test_a_stream_keeps_its_first_cards_and_counts_the_others() -> None:
    tools = tuple(ToolLine(f"t{number}", f"cat {number}", "completed") for number in range(59))
    content = PostContent(kind="turn", state="working", tools=(*tools, ToolLine("last", "ls")))

    shown = cards.tasks(content, "normal", "m.0")

    assert len(shown) == cards.CARDS + 2
    assert shown["more"] == {"id": "more", "title": "30 more", "status": "pending"}


def test_what_was_sent_to_a_card_is_not_sent_again() -> None:
    def full(thought: str, *tools: ToolLine) -> dict[str, Any]:
        content = PostContent(kind="turn", state="working", thought=thought, tools=tools)
        return cards.tasks(content, "full", "m.0")

    first = full("Let me", ToolLine("a", "cat", "in_progress", output="one"))
    second = full("Let me look", ToolLine("a", "cat", "completed", output="one two"))
    third = full("Let me look", ToolLine("a", "cat", "failed", output="one two three"))

    assert all("details" not in card for card in (*first.values(), *second.values()))
    assert "output" not in first["tool-a"]
    assert "Let me look" in second["m.0"]["title"]
    assert cards.chunks(first, second, "")[1]["output"] == "one two"
    assert cards.chunks(second, third, "") == [
        {"type": "task_update", "id": "tool-a", "title": "cat", "status": "error"}
    ]


@pytest.mark.parametrize(("state", "end"), [("done", "complete"), ("failed", "error")])
def test_at_the_end_no_card_is_left_in_progress(state: str, end: str) -> None:
    content = PostContent(
        kind="turn",
        state=state,
        plan=(PlanStep("read", "completed"), PlanStep("write", "in_progress"), PlanStep("test")),
        tools=(ToolLine("a", "ls", "in_progress"),),
    )
    shown = cards.tasks(content, "normal", "m.0")
    gone = {"plan-7": {"id": "plan-7", "title": "gone", "status": "in_progress"}}

    closed = cards.close({**gone, **shown}, content)

    assert {name: card["status"] for name, card in closed.items()} == {
        "m.0": end,
        "plan-0": "complete",
        "plan-1": end,
        "plan-2": "pending",
        "plan-7": end,
        "tool-a": end,
    }


def test_titles_are_shown_as_they_are_and_notify_no_one() -> None:
    content = PostContent(kind="turn", tools=(ToolLine("a", "ls && cat <a> <@U123>"),))

    [_, card] = cards.tasks(content, "normal", "m.0").values()

    assert card["title"] == "ls && cat <a> <\\u{2060}@U123>".replace("\\u{2060}", "\u2060")


@pytest.mark.parametrize(
    "text", ["Run rm *.log *.tmp", "Run `rm *.log *.tmp`", "Open https://a.b/_c_"]
)
def test_what_is_asked_is_shown_as_it_is(text: str) -> None:
    [block] = render.ask(PostContent(kind="ask", state="answered", text=text), seal)

    assert (block["text"]["type"], block["text"]["text"]) == ("plain_text", text)


def test_an_address_is_to_be_opened_where_an_ask_has_one() -> None:
    content = PostContent(kind="ask", state="open", text="Link it", url="https://a.b/?c=1&d=2")

    assert render.ask(content, seal)[-1]["elements"][0]["text"] == "<https://a.b/?c=1&amp;d=2>"


@given(st.text(alphabet="&<>`a", max_size=9000))
def test_a_long_text_is_cut_between_its_signs(text: str) -> None:
    blocks = render.notice(PostContent(kind="notice", note=text or "x"))

    check_blocks(blocks)
    shown = "".join(block["text"]["text"] for block in blocks)
    assert shown == texts.escape(text or "x")
    assert not any(block["text"]["text"].endswith(("&", "&a", "&am", "&amp")) for block in blocks)


def test_words_as_they_are_take_the_place_of_markdown_and_cards_only() -> None:
    blocks = [*render.progress(BUSY, 0, "quiet", seal=seal), {"type": "divider"}]

    shown = render.verbatim(blocks)

    check_blocks(shown)
    assert words(shown) == "Working\n✓ read\n▶ write <it>\nLooking."
    assert {block["type"] for block in shown} == {"context", "section", "divider"}


@pytest.mark.parametrize(
    ("level", "shown"),
    [
        ("quiet", {"ab-1.0", "plan-0", "plan-1"}),
        ("normal", {"ab-1.0", "plan-0", "plan-1", "tool-t1", "tool-t2"}),
        ("full", {"ab-1.0", "plan-0", "plan-1", "tool-t1", "tool-t2"}),
    ],
)
def test_places_see_as_many_tasks_as_they_want(level: Any, shown: set[str]) -> None:
    tasks = cards.tasks(BUSY, level, "ab-1.0")

    assert set(tasks) == shown
    assert ("output" in tasks.get("tool-t1", {})) == (level == "full")
    assert tasks["plan-1"] == {"id": "plan-1", "title": "write <it>", "status": "in_progress"}


def test_only_what_changed_is_streamed() -> None:
    before = cards.tasks(BUSY, "quiet", "m")

    assert cards.chunks(before, before, "") == []
    assert cards.chunks({}, before, "hi")[-1] == {"type": "markdown_text", "text": "hi"}


def test_channels_are_quiet_and_direct_messages_are_not() -> None:
    assert render.verbosity(BUSY, "C1") == "quiet"
    assert render.verbosity(BUSY, "D1") == "normal"


def test_an_ask_has_a_button_for_each_option_until_it_is_answered() -> None:
    options = (AskOption("a", "Allow once", "allow_once"), AskOption("r", "x" * 100, "reject_once"))
    open_ask = PostContent(kind="ask", state="open", text="run `ls`", ask=3, options=options)
    closed = PostContent(
        kind="ask", state="answered", text="run `ls`", ask=3, note="Ann: Allow once"
    )

    shown = render.ask(open_ask, seal)

    assert [button["value"] for button in buttons(shown)] == ["ask.3.a", "ask.3.r"]
    assert list(buttons(render.ask(closed, seal))) == []
    assert "Ann: Allow once" in words(render.ask(closed, seal))


def test_a_waiting_turn_offers_now_and_drop() -> None:
    blocks = render.progress(PostContent(kind="turn", state="queued"), 0, "quiet", seal=seal)

    assert [b["value"] for b in buttons(blocks)] == ["command.queue now", "command.queue drop"]


def test_the_footer_holds_the_facts_as_links() -> None:
    content = PostContent(
        kind="turn",
        state="done",
        text="x",
        facts=(Fact("acme/app, main"), Fact("Pull request", "https://a/7")),
        outcome=Outcome(calls=2, cost=0.02),
    )

    blocks = render.ending(content)
    (button,) = blocks[-1]["elements"]
    assert words(blocks) == "2 steps · $0.02"
    assert (button["text"]["text"], button["url"]) == ("View pull request", "https://a/7")


@given(
    st.text(max_size=200),
    st.sampled_from(["starting", "working", "queued", "done", "failed", "stopped"]),
    st.sampled_from(["quiet", "normal", "full"]),
)
def test_slack_takes_every_message(text: str, state: str, level: Any) -> None:
    line = text * 20
    content = PostContent(
        kind="turn",
        state=state,
        text=line,
        note=line,
        plan=(PlanStep(line),) * 20,
        tools=tuple(ToolLine(str(number), line, output=line) for number in range(20)),
        thought=line,
        facts=(Fact(text or "x", "https://a.b"),) * 5,
    )

    check_blocks(render.progress(content, 0, level, seal=seal))
    check_blocks(render.verbatim(render.progress(content, 0, level, seal=seal)))
    check_blocks(render.reduced(content, level))
    check_blocks(render.ending(content))
    check_blocks(render.notice(content))


def test_choices_are_a_list_that_slack_takes_however_long_their_names_are() -> None:
    longest = f"{'o' * 39}/{'n' * 100}"
    names = [longest, *(f"acme/r{number}" for number in range(98)), "none"]
    options = tuple(AskOption(name, name, "choice") for name in names)
    content = PostContent(kind="ask", state="open", text="Which?", ask=7, options=options)

    blocks = render.ask(content, Seal("a key").close)

    check_blocks(blocks)
    [menu] = lists(blocks)
    assert [option["value"] for option in menu["options"]] == names
    assert not list(buttons(blocks))


ASKED = DelegatedLine(
    "Codex", "look at the <tests>\n& tell @all", "working", 7, link="https://b.example/t"
)
DEEPER = DelegatedLine("Gemini", "read", "failed", 8, depth=2, words="It <crashed>")


def test_agents_that_were_asked_are_cards_at_every_level() -> None:
    content = replace(BUSY, delegated=(ASKED, DEEPER))

    shown = cards.tasks(content, "quiet", "turn")
    check_blocks(cards.blocks(content, "quiet"))

    assert shown["agent-7"]["title"] == "Asked Codex: look at the <tests> & tell @all · working"
    assert shown["agent-7"]["status"] == "in_progress"
    assert shown["agent-8"]["status"] == "error"
    assert shown["agent-8"]["output"] == "It <crashed>"


def test_a_card_of_an_agent_that_goes_on_is_not_left_in_progress() -> None:
    shown = cards.tasks(replace(BUSY, state="done", delegated=(ASKED,)), "quiet", "turn")

    assert shown["agent-7"]["status"] == "pending"
    assert shown["agent-7"]["title"].endswith(" · still working")


def test_an_answer_has_a_line_for_each_agent_that_was_asked() -> None:
    done = replace(ASKED, state="done", seconds=75.0)
    blocks = render.ending(PostContent("turn", "done", "Hi", delegated=(done, DEEPER)))
    check_blocks(blocks)

    assert blocks[0]["elements"][0]["text"] == (
        "Asked Codex: look at the &lt;tests&gt; &amp; tell @all · done in 1m 15s · "
        "<https://b.example/t|Open>\n"
        "↳ Asked Gemini: read · failed: It &lt;crashed&gt;"
    )


def test_many_agents_that_were_asked_fit_below_an_answer() -> None:
    long = replace(ASKED, agent="A" * 80, task="<!channel> " * 4000, words="w" * 4000)
    many = tuple(replace(long, id=number, state="failed") for number in range(40))
    content = PostContent("turn", "done", "Hi", delegated=many)
    blocks = render.ending(content)
    check_blocks(blocks)
    check_blocks(cards.blocks(content, "full"))

    lines = words(blocks).splitlines()
    assert "<!channel>" not in words(blocks)
    assert lines[-1] == f"and {41 - len(lines)} more"
    assert all(line.endswith("<https://b.example/t|Open>") for line in lines[:-1])
