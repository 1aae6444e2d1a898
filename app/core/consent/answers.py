"""Finds what a message answers: an option by its name, a yes, a number, or free words; pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from app.model import ask_wording as wording
from app.model.asks import CHOICE, find_allowing, label_options
from app.model.updates import Ask, AskOption

_YES: Final = frozenset({"yes", "y", "ok", "allow", "approve"})
_NO: Final = frozenset({"no", "n", "reject", "deny"})


def find_answered(asks: Sequence[Ask], text: str) -> tuple[Ask, str] | None:
    """Find the ask that a message answers, the oldest that its words fit, and the answer.

    A short answer, such as `yes` or a number, counts only if it can mean one ask.
    """
    named = [(ask, find_option(text, ask.options) or _free(text, ask)) for ask in asks]
    fitting = [(ask, answer) for ask, answer in named if answer is not None]
    short = [(ask, option) for ask in asks if (option := _short(text, ask)) is not None]
    if not fitting and len(short) == 1:
        fitting = short
    return fitting[0] if fitting else None


def ask_back(asks: Sequence[Ask], text: str) -> str:
    """Say that a short answer is not clear; empty if there is none, or no ask takes one."""
    asks = [ask for ask in asks if _takes_short(ask)]
    if not asks or not is_short(text):
        return ""
    options = [option for option in asks[0].options if not option.on_page]
    return wording.ask_back(label_options(options), len(asks))


def _free(text: str, ask: Ask) -> str | None:
    return text if ask.free_text and text.strip() else None


def _takes_short(ask: Ask) -> bool:
    """Tell whether a yes, a no or a number can answer an ask."""
    return not ask.free_text and ask.kind not in {"repository", "memory", "schedule"}


def _short(text: str, ask: Ask) -> str | None:
    return find_short(text, ask.options) if _takes_short(ask) else None


def is_short(text: str) -> bool:
    """Tell whether a whole message is a short answer: a yes, a no or a number."""
    word = _word(text)
    return word in _YES | _NO or word.isdecimal()


def find_short(text: str, options: Sequence[AskOption]) -> str | None:
    """Find the option that a yes, a no or a number means, where that is certain."""
    word, options = _word(text), [option for option in options if not option.on_page]
    if word.isdecimal() and len(word) < 3:
        return options[int(word) - 1].id if 1 <= int(word) <= len(options) else None
    found = find_allowing(options) if word in _YES else None
    if word in _NO:
        refusals = [option for option in options if option.kind == "reject_once"]
        found = refusals[0] if len(refusals) == 1 else None
    return found.id if found is not None else None


def _word(text: str) -> str:
    return text.strip().rstrip(".!)").casefold()


def find_option(text: str, options: Sequence[AskOption]) -> str | None:
    """Find the option that a whole message names, by its label, its address or its id.

    For `owner/name` the name alone is enough if no other choice ends with it.
    """
    word = text.strip().casefold()
    options = [option for option in options if not option.on_page]
    # First by what people read: the id of one option may be the name of another.
    known = {option.id.casefold(): option.id for option in reversed(options)}
    known |= {option.url.casefold(): option.id for option in options}
    known |= {
        label.casefold(): option.id
        for option, label in zip(options, label_options(options), strict=True)
    }
    if word and word in known:
        return known[word]
    ending = [
        option.id
        for option in options
        if option.kind == CHOICE and word == option.id.casefold().rpartition("/")[2]
    ]
    return ending[0] if len(ending) == 1 else None
