"""The options of an ask, and what people are shown of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.core.consent.offers import (
    CHOICE,
    OPTIONS,
    find_allowing,
    find_option,
    find_refusing,
    find_short,
    is_short,
    label_options,
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


def test_an_option_is_meant_by_its_whole_name_or_id() -> None:
    assert find_option(" allow ONCE\n", (ONCE, REJECT)) == "a"
    assert find_option("R", (ONCE, REJECT)) == "r"
    assert find_option("allow", (ONCE, REJECT)) is None
    assert find_option("", (AskOption("", "", ""),)) is None


def test_options_of_the_same_name_are_told_apart() -> None:
    options = [AskOption(key, name, "allow_once") for key, name in zip("abcd", TWINS, strict=True)]

    assert label_options(options) == ["Yes", "yes (2)", "Yes (2) (2)", "No"]
    found = [find_option(label, options) for label in label_options(options)]
    assert found == ["a", "b", "c", "d"]


def test_the_name_that_people_read_counts_before_an_id() -> None:
    options = [AskOption("b", "Reject", "reject_once"), AskOption("c", "B", "allow_once")]

    assert find_option("b", options) == "c"


def test_an_option_is_found_by_its_address() -> None:
    options = [AskOption("acme/api", "acme/api", CHOICE, url="https://github.com/Acme/api")]

    assert find_option("https://github.com/acme/api", options) == "acme/api"


def test_of_a_repository_the_name_alone_will_do_unless_two_have_it() -> None:
    names = ("acme/api", "acme/site", "other/site")
    choices = tuple(AskOption(name, name, CHOICE) for name in names)

    assert find_option("API", choices) == "acme/api"
    assert find_option("acme/site", choices) == "acme/site"
    assert find_option("site", choices) is None
    assert find_option("", choices) is None
    assert find_option("once", (AskOption("allow/once", "Allow", "allow_once"),)) is None


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


@pytest.mark.parametrize(
    ("text", "found"),
    [
        *(("1", "yes"), ("2.", "all"), ("3", "no"), ("YES", "yes"), ("ok", "yes"), ("no!", "no")),
        *(("4", None), ("0", None), ("maybe", None), ("yes please", None)),
    ],
)
def test_a_number_or_a_yes_or_a_no_finds_its_option(text: str, found: str | None) -> None:
    assert find_short(text, TERMINAL) == found


def test_a_yes_that_may_mean_two_options_finds_none() -> None:
    both = (*TERMINAL, AskOption("other", "Allow elsewhere", "allow_once"))

    assert find_short("yes", both) is None
    assert is_short("yes")
    assert not is_short("yes, please")
