"""What a message answers: an option by its name, a yes, a no, or a number."""

from __future__ import annotations

import pytest

from app.core.consent.answers import find_option, find_short, is_short
from app.model.asks import CHOICE, label_options
from app.model.updates import AskOption

ONCE = AskOption("a", "Allow once", "allow_once")
REJECT = AskOption("r", "Reject", "reject_once")
TWINS = ("Yes", "yes", "Yes (2)", "No")
TERMINAL = (
    AskOption("yes", "Yes", "allow_once"),
    AskOption("all", "Yes, allow all edits during this session", "allow_always"),
    AskOption("no", "No, and tell Claude what to do differently", "reject_once"),
)


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
