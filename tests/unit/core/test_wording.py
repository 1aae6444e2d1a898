"""What the bridge says to people: every sentence, and the words that it avoids."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from app.errors import AgentDied, AgentLoginNeeded, AgentRefused, AgentTimedOut
from app.model import ask_wording as asks
from app.model import wording
from app.model.posts import Outcome, PostContent, Pushed
from app.model.updates import AskView, PlanStep, ShownFact
from app.services.common import wording as services
from app.services.github import wording as github
from app.services.linear import wording as linear
from app.services.slack import wording as slack

AVOIDED = re.compile(r"\b(nobody|whoever|whatever|shall|beside|anew|of its own|somebody|log-in)\b")
"""Words that a colleague would not say."""
SETTING = re.compile(r"\b[A-Z]+_[A-Z_]+\b")
TO_OPERATORS = {
    "github": {
        "CHECK_KEY",
        "NOT_DELIVERED",
        "NOT_INSTALLED",
        "OTHER_ACCOUNT",
        "OTHER_SECRET",
        "WRONG_ADDRESS",
    },
    "linear": {"CHECK_CLIENT", "CREATE_ACCESS", "NOT_LISTED", "UNREADABLE"},
}
"""Sentences with a remedy that only the operator has: these name settings."""
SURFACES = (wording, asks, services, github, linear, slack)


def sentences() -> Iterator[tuple[str, str]]:
    """List every sentence that a place may read, with where it comes from."""
    for module in SURFACES:
        for name, value in vars(module).items():
            if name.isupper() and isinstance(value, str):
                yield f"{module.__name__}.{name}", value
            elif name.isupper() and isinstance(value, dict):
                texts = (each for each in value.values() if isinstance(each, str))
                yield from ((f"{module.__name__}.{name}", each) for each in texts)


@pytest.mark.parametrize(
    ("name", "words"), [pytest.param(*each, id=each[0]) for each in sentences()]
)
def test_no_sentence_for_people_has_a_word_that_a_colleague_would_not_say(
    name: str, words: str
) -> None:
    assert not AVOIDED.search(words), name


def test_only_a_sentence_to_the_operator_names_a_setting() -> None:
    naming = {name for name, words in sentences() if SETTING.search(words)}

    assert naming == {
        "app.model.wording.DISK_LOW",
        *(
            f"app.services.{service}.wording.{name}"
            for service, names in TO_OPERATORS.items()
            for name in names
        ),
    }


def test_a_failure_is_told_by_the_agents_name_and_without_codes() -> None:
    refused = AgentRefused("claude", -32603, "The disk is full")
    died = AgentDied("claude", status=70, last_words="Out of memory")
    login = AgentLoginNeeded("claude", -32000, "no key")
    slow = AgentTimedOut("claude", "session/new", 30)

    told = [wording.failure(each, "Claude", "claude") for each in (refused, died, login, slow)]

    assert told[0] == "Claude failed: The disk is full"
    assert told[1] == "Claude crashed. Its last words: Out of memory"
    assert told[2].startswith("Claude isn't signed in. Run `agent-bridge agents login claude`")
    assert told[3].startswith("Claude did not answer session/new")


def test_the_first_line_has_only_what_is_known() -> None:
    pushed = Pushed("acme/app", "fix", files=3, added=34, removed=5, checks="running")

    def lead(**outcome: object) -> tuple[str, ...]:
        content = PostContent(kind="turn", state="done", outcome=Outcome(**outcome))  # type: ignore[arg-type]  # made up by the test
        return wording.headline(content)

    changed = f"+34 {wording.MINUS}5 in 3 files"
    assert lead(seconds=161, pushed=pushed) == (changed, "2m 41s", "checks running")
    assert lead(pushed=Pushed("acme/app", "fix")) == ()
    assert lead(seconds=161) == ()


def test_the_foot_counts_the_plan_the_calls_and_who_approved() -> None:
    plan = (PlanStep("a", "completed"), PlanStep("b"))
    outcome = Outcome(calls=5, approvers=("Ann", "Bob", "Ann"))

    content = PostContent(kind="turn", state="done", plan=plan, outcome=outcome)

    assert wording.record(content) == ("Plan 1/2", "5 steps", "3 approvals (Ann, Bob)")
    assert wording.record(PostContent(kind="turn", state="done")) == ()


EDITS = f"Claude wants to edit `app/a.py` (+1 {wording.MINUS}1)"
RUNS = "Claude wants to run this command:"
CHANGE = ShownFact("change", "-a\n+b", path="app/a.py", added=1, removed=1)


@pytest.mark.parametrize(
    ("title", "act", "fact", "words"),
    [
        ("Edit app/a.py", "edit", CHANGE, EDITS),
        ("app/a.py", "edit", CHANGE, EDITS),
        (
            "`make *x*`",
            "execute",
            ShownFact("command", "make *x*"),
            "Claude wants to run this command:",
        ),
        ("Deploy it", "execute", ShownFact("command", "make deploy"), ""),
        ("Edit app/b.py", "edit", CHANGE, ""),
    ],
)
def test_an_ask_is_a_sentence_where_its_title_says_no_more(
    title: str, act: str, fact: ShownFact, words: str
) -> None:
    view = AskView(title, (fact,), agent="Claude", act=act)

    assert asks.ask_head(view) == words
    assert (title in asks.markdown(view)) is (not words or title in words or title == "app/a.py")
