"""Prepares the subject of an ask for display: revealed, redacted, no longer than fits; pure.

What would run is shown whole, or it says how much of it is not shown.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Literal

from app.core.consent.grants import without_grants
from app.model import ask_wording as wording
from app.model.asks import only_on_page, shortlist
from app.model.text import Line, compare, reveal
from app.model.updates import AskFact, AskRequest, AskView, ShownFact

TITLE_CHARACTERS = 2_000
"""Length of an ask's title; what would run is shown separately."""
SUBJECT_CHARACTERS = 8_000
"""What a continued turn is told about its earlier ask."""
OPTION_CHARACTERS = 150
"""Length of a button's label: a little more than platforms show."""
WHOLE_CHARACTERS = 100_000
"""What the page shows of what would run; people cannot judge a longer command."""
DIGEST_CHARACTERS = 16
"""Shown part of a SHA-256: enough to compare by eye."""

_LISTED = frozenset({"path", "host", "file", "address"})
"""Kinds of facts that are one line each, so several of them form a list."""
_SIGNS = {"add": "+", "del": "-", "same": " ", "gap": ""}


@dataclass(frozen=True, slots=True)
class Room:
    """How much of an ask a surface shows."""

    characters: int
    """Of all that would run."""
    lines: int
    """Of all changes."""
    line: int
    """Characters of one changed line."""


ELSEWHERE = Room(5_500, 16, 150)
"""The strictest platform refuses some 11,000 characters, and a title needs room as well."""
PAGE = Room(WHOLE_CHARACTERS, 2_000, 2_000)


def present(request: AskRequest, redact: Callable[[str], str], link: str = "") -> AskRequest:
    """Make an ask fit to be shown: short enough, and without secrets."""
    view = view_of(request, redact, ELSEWHERE, link=link)
    if view.secret:
        request = without_grants(request)  # their scope would not be shown word for word
    options = request.options if request.kind == "repository" else shortlist(request.options)
    return replace(
        request,
        call=redact(request.call),
        title=redact(request.title)[:TITLE_CHARACTERS],
        subject=_beginning(redact(request.subject)),
        url=redact(request.url),
        options=tuple(
            replace(option, name=_name(redact(option.name)))
            for option in (only_on_page(options) if view.cut else options)
        ),
        view=view,
        whole=view_of(request, redact, PAGE),
    )


def view_of(
    request: AskRequest, redact: Callable[[str], str], room: Room, *, link: str = ""
) -> AskView:
    """Fit an ask into the room of a surface."""
    title, facts = redact(request.title), [_redact(fact, redact) for fact in request.facts]
    return AskView(
        title=_title(title),
        facts=tuple(_show(facts, room)),
        secret=title != request.title or facts != list(request.facts),
        unsaid=_unsaid(request),
        link=link,
        agent=request.agent,
        act=request.tool_kind,
    )


def is_too_long(facts: tuple[AskFact, ...]) -> bool:
    """Tell whether what would run is too long to show to people."""
    texts = [fact.text for fact in facts if fact.kind != "change"]
    return sum(len(reveal(text, lines=True)) for text in texts) > WHOLE_CHARACTERS


def _unsaid(request: AskRequest) -> Literal["", "call", "change"]:
    if request.tool is None:
        return ""
    if not request.facts:
        return "call"
    saying = {"command", "change", "input"}
    said = any(fact.kind in saying for fact in request.facts)
    return "change" if request.tool_kind == "edit" and not said else ""


def _redact(fact: AskFact, redact: Callable[[str], str]) -> AskFact:
    old = None if fact.old is None else redact(fact.old)
    return replace(fact, text=redact(fact.text), path=redact(fact.path), old=old)


def _name(name: str) -> str:
    left = len(name) - OPTION_CHARACTERS
    return name if left <= 0 else f"{name[:OPTION_CHARACTERS]} {wording.cut(left)}"


def _beginning(subject: str) -> str:
    left = len(subject) - SUBJECT_CHARACTERS
    return subject if left <= 0 else f"{subject[:-left]}\n{wording.cut(left)}"


def _title(title: str) -> str:
    shown = reveal(title.strip(), lines=True)
    left = len(shown) - TITLE_CHARACTERS
    return shown if left <= 0 else f"{shown[:TITLE_CHARACTERS]} {wording.cut(left)}"


def _show(facts: list[AskFact], room: Room) -> Iterator[ShownFact]:
    characters = room.characters
    for fact in (*_changes(facts, room), *_others(facts)):
        yield fact if fact.kind == "change" else _fit(fact, characters)
        characters -= 0 if fact.kind == "change" else min(characters, len(fact.text))


def _others(facts: list[AskFact]) -> Iterator[ShownFact]:
    others = [fact for fact in facts if fact.kind != "change"]
    for kind, group in groupby(others, lambda fact: fact.kind):
        texts = [_reveal(fact) for fact in group]
        for text in ["\n".join(texts)] if kind in _LISTED else texts:
            yield ShownFact(kind, text)


def _changes(facts: list[AskFact], room: Room) -> Iterator[ShownFact]:
    """Show the first lines of the first changes, and of the others the files and their counts."""
    lines, rest = room.lines, []
    for fact in facts:
        if fact.kind != "change":
            continue
        change = _change(fact, lines, room.line)
        if lines <= 0:
            rest.append(f"+{change.added} -{change.removed} {change.path}")
        else:
            yield change
        lines -= max(1, change.text.count("\n") + 1)
    if rest:
        yield ShownFact("file", "\n".join(rest))


def _reveal(fact: AskFact) -> str:
    return reveal(fact.text, lines=fact.kind not in _LISTED, ascii_only=fact.kind == "host")


def _fit(fact: ShownFact, characters: int) -> ShownFact:
    """Show a fact whole, or its beginning and its end."""
    if len(fact.text) <= characters:
        return fact
    head, tail = characters - characters // 3, characters // 3
    return replace(
        fact,
        text=fact.text[:head],
        tail=fact.text[len(fact.text) - tail :],
        left=len(fact.text) - head - tail,
        digest=hashlib.sha256(fact.text.encode()).hexdigest()[:DIGEST_CHARACTERS],
    )


def _change(fact: AskFact, most: int, width: int) -> ShownFact:
    lines = compare(fact.old, fact.text)
    shown = lines[: max(0, most)]
    return ShownFact(
        "change",
        "\n".join(_line(line, width) for line in shown),
        path=reveal(fact.path),
        added=sum(line.kind == "add" for line in lines),
        removed=sum(line.kind == "del" for line in lines),
        left=len(lines) - len(shown),
        is_new=fact.old is None,
    )


def _line(line: Line, width: int) -> str:
    # Behind a sign, the spaces that a line begins with are seen.
    shown = _SIGNS[line.kind] + reveal(f"+{line.text}", tabs=True)[1:]
    left = len(shown) - width
    return shown if left <= 0 else f"{shown[:width]} {wording.cut(left)}"
