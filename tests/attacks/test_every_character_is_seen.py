"""On every surface what a person reads determines what runs, character by character."""

from __future__ import annotations

import io
import re
from unicodedata import bidirectional, category

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from app.cli.answers import Question, show
from app.core.consent.views import ELSEWHERE, PAGE, view_of
from app.model.posts import PostContent
from app.model.text import conceal, reveal
from app.model.updates import AskFact, AskRequest, AskView, FactKind
from app.server.page.view.blocks import QuestionBlock as PageQuestion
from app.server.page.view.render import Renderer
from app.server.page.view.roster import AgentView, PageRoster
from app.services.github import checks as board
from app.services.github import render as github
from app.services.linear import render as linear
from app.services.slack import render as slack
from app.terminal import screen as lines
from app.terminal.screen import PlainLines, Screen
from tests.support import asked

PIECES = (
    *("```", "`", "~~~", "*", "__", "_x_", "~~", "> ", "# ", "- [ ] ", "|", "\\", "![a](b)"),
    *("<b>", "</pre>", "</code>", "<!--", "-->", "<script>", "&lt;", "&amp;", "&#42;", "{{ 1 }}"),
    *("<!channel>", "<@U123>", "<#C1|x>", "<!here>", "@here", "@ann", "#123", ":smile:", "www.a.b"),
    *("\u202e", "\u2066", "\u200b", "\u200d", "\ufeff", "\u00ad", "\u061c", "\u2028", "\u3164"),
    *(
        "\x00",
        "\x07",
        "\x1b[2K",
        "\x1b]0;x\x07",
        "\r",
        "\r\n",
        "\n",
        "\t",
        "\x7f",
        "\x85",
        "\u00a0",
    ),
    *("\\u{202E}", "\\u{5C}", "\\u202e", "\\u{", "\u05d0", "\u0627", "e\u0301", "\U000e0041"),
    *(" ", "  ", "rm -rf", "/", ".", "..", "é", "日本", "🎉", "\ud800"),
)
nasty = st.lists(st.one_of(st.sampled_from(PIECES), st.characters()), min_size=1, max_size=30).map(
    "".join
)
facts = st.tuples(st.sampled_from(("command", "path", "host", "file", "input", "address")), nasty)
FEW = settings(max_examples=150, deadline=None)
ROSTER = PageRoster.of([AgentView("claude", "claude", "Claude")])


def request(kind: FactKind, text: str) -> AskRequest:
    """Ask about something under a title that is as bad."""
    return AskRequest("call", f"Do {text}", (), facts=(AskFact(kind, text),))


def view(kind: FactKind, text: str) -> AskView:
    return view_of(request(kind, text), str, ELSEWHERE)


def content(kind: FactKind, text: str) -> PostContent:
    return PostContent("ask", state="open", text=text, ask=1, view=view(kind, text))


def is_plain(text: str) -> bool:
    """Tell whether nothing in a text hides or moves anything."""
    return all(
        each in "\n "
        or (
            category(each) not in {"Cc", "Cf", "Cn", "Co", "Cs", "Mn", "Me", "Zs", "Zl", "Zp"}
            and bidirectional(each) not in {"R", "AL", "AN"}
        )
        for each in text
    )


@given(nasty, st.booleans(), st.booleans(), st.booleans())
@example("\\u{202E}", False, False, False)
@example("\\\u202e", False, False, False)
@example("a \n b \n", True, False, False)
@example("\t", False, True, False)
def test_what_is_revealed_is_plain_and_tells_exactly_what_it_was(
    text: str, one: bool, other: bool, third: bool
) -> None:
    shown = reveal(text, lines=one, tabs=other, ascii_only=third)

    assert conceal(shown) == text
    assert is_plain(shown.replace("\t", "") if other else shown)
    assert shown == shown.strip()
    assert one or "\n" not in shown


@FEW
@given(facts)
def test_on_github_what_is_read_is_what_runs(fact: tuple[FactKind, str]) -> None:
    comment = github.pages(content(*fact), "marker", "claude-bridge")[0]
    summary = board.asking(content(*fact))["output"]["summary"]

    for shown in (comment, summary):
        title, exact = asked.in_markdown(shown)
        assert conceal(exact) == fact[1]
        assert is_plain(exact)
        assert conceal(title) == f"Do {fact[1]}".strip()
        assert re.search("[@#]|<!channel|www", asked.outside_code(shown)) is None


@FEW
@given(facts)
def test_on_linear_what_is_read_is_what_runs(fact: tuple[FactKind, str]) -> None:
    (step,) = linear.steps(content(*fact), linear.ShownTurn())
    assert isinstance(step.call, linear.NewActivity)

    body = step.call.content["body"]
    assert conceal(asked.in_markdown(body)[-1]) == fact[1]
    assert re.search("[@#]|<!channel|www", asked.outside_code(body)) is None


@FEW
@given(facts)
def test_on_slack_what_is_read_is_what_runs(fact: tuple[FactKind, str]) -> None:
    blocks = slack.ask(content(*fact), lambda *_: "sealed")

    for shown in (asked.in_slack(blocks), [plain_texts(slack.verbatim(blocks))[-1]]):
        assert conceal(shown[-1]) == fact[1]
    words = [
        each["text"] for block in blocks for each in block.get("elements", ()) if "text" in each
    ]
    assert not [text for text in words if "<" in text]


def plain_texts(blocks: list[dict[str, object]]) -> list[str]:
    return [str(block["text"]["text"]) for block in blocks if block["type"] == "section"]  # type: ignore[index]  # a text object


@FEW
@given(facts)
def test_on_the_page_what_is_read_is_what_runs(fact: tuple[FactKind, str]) -> None:
    whole = view_of(request(*fact), str, PAGE)
    block = PageQuestion("a1", 1, "claude", "", (), "", 0.0, "log", view=whole)

    html = Renderer(ROSTER).block(block)

    assert [*map(conceal, asked.on_page(html))] == [fact[1]]


@FEW
@given(facts)
@example(("command", "\r\n:"))
def test_on_a_terminal_what_is_read_is_what_runs(fact: tuple[FactKind, str]) -> None:
    printed = io.StringIO()
    whole = view_of(request(*fact), str, PAGE)
    details = tuple(lines.ask_lines(whole))

    show(Screen(printed, PlainLines(printed)), Question("claude", whole.heading, (), details))

    assert is_plain(printed.getvalue())
    assert [*map(conceal, asked.on_terminal(printed.getvalue()))] == [fact[1]]


@pytest.mark.long
@FEW
@given(st.lists(nasty, min_size=1, max_size=8), st.lists(nasty, max_size=8))
def test_the_lines_of_an_edit_are_those_that_change(new: list[str], old: list[str]) -> None:
    change = AskFact("change", "\n".join(new), "src/a.py", "\n".join(old))
    (shown,) = view_of(AskRequest("", "Edit", (), facts=(change,)), str, PAGE).facts

    before, after = (
        [conceal(line[1:]) for line in shown.text.split("\n") if line[:1] in signs]
        for signs in (("-", " "), ("+", " "))
    )
    assert shown.left == 0
    assert [line for line in after if line not in change.text.split("\n")] == []
    assert [line for line in before if line not in (change.old or "").split("\n")] == []
    assert shown.added == sum(line[:1] == "+" for line in shown.text.split("\n"))
