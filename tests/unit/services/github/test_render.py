"""How posts look on GitHub."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.model.posts import DelegatedLine, Fact, PostContent, ToolLine
from app.model.updates import AskOption, PlanStep
from app.services.github import render

MARKER = "<!-- agent-bridge:ab-7 -->"


def page(**content: object) -> str:
    given = {"kind": "turn", **content}
    (only,) = render.pages(PostContent(**given), "ab-7", "claude-bridge")  # type: ignore[arg-type]
    return only


def test_progress_shows_plan_tools_words_and_how_to_stop() -> None:
    shown = page(
        state="working",
        text="So far so good.",
        plan=(PlanStep("look", "completed"), PlanStep("fix", "in_progress"), PlanStep("test")),
        tools=(ToolLine("1", "read a.py", "completed"), ToolLine("2", "run `make`", "in_progress")),
        facts=(Fact("agent/claude/1", "https://github.example/tree"),),
    )

    assert shown == (
        "⚙️ **Working** …\n\n"
        "- [x] `look`\n- [ ] **`fix`** ←\n- [ ] `test`\n\n"
        "- ✓ `read a.py`\n- … `` run `make` ``\n\n"
        "So far so good.\n\n"
        "<sub>[agent/claude/1](https://github.example/tree) · `@claude-bridge stop` stops it</sub>"
        "\n\n<!-- agent-bridge:ab-7/progress -->"
    )


def test_a_quiet_place_sees_neither_tools_nor_words_before_the_end() -> None:
    shown = page(state="working", text="words", tools=(ToolLine("1", "x"),), verbosity="quiet")

    assert "words" not in shown
    assert "`x`" not in shown


def test_the_answer_takes_the_place_of_progress() -> None:
    shown = page(state="done", text="All done.", plan=(PlanStep("look", "completed"),))

    assert shown.startswith("All done.\n\n<details><summary>Plan 1/1</summary>")
    assert shown.endswith(MARKER)


def test_an_answer_begins_with_the_name_of_the_person_who_asked() -> None:
    assert page(state="done", text="All done.", asker="ann").startswith("@ann\n\nAll done.")
    assert page(state="failed", note="It died.", asker="ann").startswith("@ann\n\n❌ **Failed**")


def test_a_bot_is_not_mentioned_by_its_number() -> None:
    assert page(state="done", text="All done.", asker="41898282").startswith("All done.")


def test_a_failure_says_so_first() -> None:
    assert page(state="failed", note="It died.").startswith("❌ **Failed**\n\nIt died.")


def test_an_ask_shows_its_options_and_how_to_answer() -> None:
    options = (AskOption("a", "Allow once", "allow_once"), AskOption("r", "Reject", "reject_once"))

    shown = page(kind="ask", state="open", text="run ```rm```", options=options)
    free = page(kind="ask", state="open", text="Why?", options=options, free_text=True)

    assert "\n````\nrun ```rm```\n````" in shown
    assert "1. `Allow once`\n2. `Reject`" in shown
    assert "Reply `@claude-bridge 1`, `@claude-bridge yes` or `@claude-bridge no`." in shown
    assert "Answer with `@claude-bridge` and your words, or with one of these:" in free
    assert "1." not in free


def test_an_answered_ask_says_by_whom() -> None:
    shown = page(kind="ask", state="answered", text="run make", note="Ann: Allow once")

    assert shown.startswith("`Ann: Allow once`\n\n<details><summary>What was asked</summary>")
    assert "\n```\nrun make\n```\n" in shown


@pytest.mark.parametrize(
    ("text", "quiet"),
    [
        ("thanks @bob", "thanks `@bob`"),
        ("thanks @ann", "thanks @ann"),
        ("ask @acme/core and @codex-bridge[bot]", "ask `@acme/core` and `@codex-bridge[bot]`"),
        ("`@bob` and a@b.c", "`@bob` and a@b.c"),
        ("```\n@decorator\n```\n@bob", "```\n@decorator\n```\n`@bob`"),
        ("~~~py\n@decorator\n", "~~~py\n@decorator\n"),
        ("<!-- agent-bridge:ab-1 -->", "<!-- ab-1 -->"),
    ],
)
def test_an_agent_notifies_nobody_but_whoever_asked(text: str, quiet: str) -> None:
    assert render.quiet(text, "ann") == quiet


def test_a_long_answer_is_split_into_comments_that_github_takes() -> None:
    text = "\n\n".join(f"Paragraph {number}. " + "x" * 300 for number in range(500))

    pages = render.pages(PostContent(kind="turn", state="done", text=text), "ab-7", "c")

    assert len(pages) == 3
    assert all(len(each) <= render.BODY_CHARACTERS for each in pages)
    assert [each.rpartition("\n")[2] for each in pages] == [
        MARKER,
        "<!-- agent-bridge:ab-7/2 -->",
        "<!-- agent-bridge:ab-7/3 -->",
    ]


@pytest.mark.parametrize(
    "content",
    [
        PostContent(kind="turn", state="done", text="@a " * 20_000),
        PostContent(kind="turn", state="failed", text="word " * 11_000, note="why " * 9_000),
        PostContent(kind="notice", note="@a " * 20_000),
    ],
)
def test_whatever_is_added_to_an_answer_github_takes_it(content: PostContent) -> None:
    pages = render.pages(content, "ab-7", "claude-bridge")

    assert all(len(each) <= render.BODY_CHARACTERS for each in pages)
    assert pages[0].endswith(MARKER)
    assert sum(each.count("`@a`") for each in pages) >= content.text.count("@a")


def test_a_fence_that_is_cut_is_closed_and_opened_again() -> None:
    text = "```python\n" + "line\n" * 100 + "```\nafter"

    first, *_, last = [piece for piece, _ in render.split(text, 300)]

    assert first.startswith("```python\n")
    assert first.endswith("\n```")
    assert last.startswith("```python\n")
    assert last.endswith("```\nafter")


@given(st.text(alphabet="ab \n`~", max_size=400), st.integers(20, 100))
def test_however_a_text_is_split_nothing_of_it_is_lost(text: str, size: int) -> None:
    ends = [end for _, end in render.split(text, size)]

    assert ends[-1] == len(text)
    assert ends == sorted(ends)
    assert all(later - earlier <= size for earlier, later in zip([0, *ends], ends, strict=False))


@given(st.text(max_size=500))
def test_any_text_can_be_shown(text: str) -> None:
    for state in ("done", "failed"):
        assert MARKER in page(state=state, text=text, note=text, plan=(PlanStep(text),))


ASKED = DelegatedLine("Codex", "look at @octocat's `tests`", "working", 7, link="https://b.example")


def test_agents_that_were_asked_have_a_line_while_the_turn_works() -> None:
    deeper = DelegatedLine("<Gemini> @all", "read", "failed", 8, depth=2, words="It crashed\n@all")

    shown = page(state="working", delegated=(ASKED, deeper))

    assert (
        "- Asked Codex: `` look at @octocat's `tests` `` · working · [Open](https://b.example)\n"
        "  - Asked &lt;Gemini&gt; `@all`: `read` · failed: `It crashed @all`\n\n"
    ) in shown


def test_agents_that_were_asked_have_a_line_below_the_answer() -> None:
    shown = page(state="done", text="It is fine.", delegated=(ASKED,))

    assert shown.startswith("It is fine.\n\n- Asked Codex: ")
    assert " · still working · [Open](https://b.example)" in shown


def test_a_long_answer_and_many_agents_fit_into_comments() -> None:
    long = DelegatedLine(
        "A" * 80, "x" * 4000, "failed", link=f"https://b.example/{'p' * 200}", words="y" * 4000
    )
    content = PostContent(kind="turn", state="done", text="word " * 40_000, delegated=(long,) * 40)

    found = render.pages(content, "ab-7", "claude-bridge")

    assert all(len(each) < render.BODY_CHARACTERS for each in found)
    assert "- and 32 more" in found[-1]
    assert "…\n\n<!-- agent-bridge" not in found[-1], "nothing is cut off"
