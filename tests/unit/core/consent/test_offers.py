"""The options of an ask, and what people are shown of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.model.asks import (
    OPTIONS,
    find_allowing,
    find_refusing,
    only_once,
    shorten_names,
    shortlist,
    text_of,
)
from app.model.updates import AskOption

ONCE = AskOption("a", "Allow once", "allow_once")
ALWAYS = AskOption("w", "Allow always", "allow_always")
REJECT = AskOption("r", "Reject", "reject_once")
NEVER = AskOption("n", "Never", "reject_always")
TWINS = ("Yes", "yes", "Yes (2)", "No")


def test_only_one_option_that_allows_once_fits() -> None:
    assert find_allowing((ALWAYS, ONCE, REJECT)) == ONCE
    assert find_allowing((ALWAYS, REJECT)) is None
    assert find_allowing((ONCE, ONCE, REJECT)) is None


def test_the_mildest_refusal_fits() -> None:
    assert find_refusing((ONCE, NEVER, REJECT)) == REJECT
    assert find_refusing((ONCE, NEVER)) == NEVER
    assert find_refusing((ONCE,)) is None


def test_however_many_ways_there_are_to_allow_one_to_refuse_is_shown() -> None:
    many = tuple(AskOption(str(n), f"Way {n}", "allow_always") for n in range(OPTIONS))

    assert shortlist((*many, REJECT)) == (*many[:-1], REJECT)
    assert shortlist((REJECT, *many)) == (REJECT, *many[:-1])
    assert shortlist((*many, ONCE)) == many


def test_what_an_agent_would_remember_by_itself_is_left_out() -> None:
    assert only_once((ONCE, ALWAYS, REJECT, NEVER)) == (ONCE, REJECT)
    assert only_once((ONCE, ALWAYS, NEVER)) == (ONCE, NEVER), "else there would be no way to say no"
    assert only_once((ALWAYS, REJECT)) == (ALWAYS, REJECT), "else there would be no way to say yes"


def test_an_ask_with_several_ways_to_say_yes_is_a_choice_and_stays_as_it_is() -> None:
    choice = (ONCE, replace(ONCE, id="b"), ALWAYS, REJECT, NEVER)

    assert only_once(choice) == choice


@pytest.mark.parametrize(
    ("title", "subject", "text"),
    [
        ("Run `ls`", "ls", "Run `ls`"),
        ("Write a.txt", "a.txt", "Write a.txt"),
        ("Write config", "/home/ann/.ssh/config", "Write config\n```\n/home/ann/.ssh/config\n```"),
        ("Run make", "/tmp/evil/make", "Run make\n```\n/tmp/evil/make\n```"),
        ("List files", "rm -rf /", "List files\n```\nrm -rf /\n```"),
        ("Tidy up", "/", "Tidy up\n```\n/\n```"),
        ("Show", "echo ```", "Show\n````\necho ```\n````"),
        ("Which?", "", "Which?"),
    ],
)
def test_a_command_is_shown_exactly_whatever_its_title_says(
    title: str, subject: str, text: str
) -> None:
    assert text_of(title, subject) == text


YES = AskOption("yes", "Yes, proceed", "allow_once")
NO = AskOption("no", "No, and tell Claude what to do differently", "reject_once")


def test_a_yes_and_a_no_of_a_terminal_are_shortened_and_nothing_that_says_more() -> None:
    own = AskOption("x", "Yes, but only this file", "allow_once")
    run = AskOption("run", "Yes, and don't ask again for pytest commands in /w", "allow_always")
    lie = AskOption("lie", "No", "allow_once")
    twins = (YES, replace(YES, id="again"))

    assert [option.name for option in shorten_names((YES, NO))] == ["Allow", "Reject"]
    assert shorten_names((own, run, lie)) == (own, run, lie)
    assert shorten_names(twins) == twins
