"""The options of an ask, and what people are shown of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.core.consent.offers import (
    OPTIONS,
    find_allowing,
    find_refusing,
    shorten_names,
    shortlist,
    text_of,
    with_session_offer,
)
from app.core.updates import AskOption, AskRequest

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


@pytest.mark.parametrize(
    ("kind", "options", "offered"),
    [
        ("execute", (ONCE, REJECT), True),
        ("execute", (ONCE, ALWAYS, REJECT), False),
        ("other", (ONCE, REJECT), False),
        ("", (ONCE, REJECT), False),
        ("execute", (ONCE, ONCE, REJECT), False),
        ("execute", (REJECT,), False),
    ],
)
def test_a_kind_is_offered_for_the_session_where_the_agent_offers_no_always(
    kind: str, options: tuple[AskOption, ...], offered: bool
) -> None:
    request = with_session_offer(AskRequest("c", "x", options, tool_kind=kind))

    assert (request.options != options) is offered


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


TERMINAL = (
    AskOption("yes", "Yes", "allow_once"),
    AskOption("all", "Yes, allow all edits during this session", "allow_always"),
    AskOption("no", "No, and tell Claude what to do differently", "reject_once"),
)


def test_phrases_of_a_terminal_are_shortened_and_others_stay() -> None:
    own = AskOption("x", "Yes, but only this file", "allow_once")
    run = AskOption("run", "Yes, and don't ask again for pytest commands in /w", "allow_always")
    lie = AskOption("lie", "No", "allow_once")

    short = [option.name for option in shorten_names(TERMINAL)]

    assert short == ["Allow", "Allow all edits here", "Reject"]
    assert [option.name for option in shorten_names((own, run, lie))] == [
        "Yes, but only this file",
        "Allow pytest here",
        "No",
    ]
    assert shorten_names((TERMINAL[0], replace(TERMINAL[0], id="again"))) == (
        TERMINAL[0],
        replace(TERMINAL[0], id="again"),
    )
