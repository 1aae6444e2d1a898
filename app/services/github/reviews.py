"""Reads reviews of pull requests, and makes a review of an agent's answer; pure.

GitHub reports a review piece by piece. Each piece names its review, the adapter reads the whole of
it, and this module makes one message of it. A review changes with any of its pieces; of all Apps
that receive the event, only one reports it: that of the agent which is named first, else of the
agent that opened the pull request.

Nothing that an agent wrote is lost: a comment that fits no line of the diff goes into the text of
the review, because GitHub refuses a whole review for one such comment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from textwrap import dedent, indent

from app.markdown.hidden import Visible, strip
from app.model.inbound import Changed, Heard
from app.model.text import moment
from app.services.github import wording
from app.services.github.messages import (
    EventReader,
    Words,
    agents_before,
    change,
    command_in,
    hear,
    is_own,
    new_mentions,
    point,
)
from app.services.github.names import Identities, Name, Spot
from app.services.github.payloads import Comment, GitHubReview, LineCommentEvent, ReviewEvent

PATH_CHARACTERS = 200
"""The longest file name that is shown: the author of the pull request chose it."""

PieceEvent = ReviewEvent | LineCommentEvent


@dataclass(frozen=True, slots=True)
class InReview:
    """Marks a message as part of a review, whose other parts come with it."""

    review: int


@dataclass(frozen=True, slots=True)
class Piece:
    """Marks a change of one piece of a review, whose other pieces did not come with it."""

    review: int
    named: tuple[str, ...]
    """The agents that the piece named before."""
    opener: str | None
    """The agent that opened the pull request."""


def hear_piece(event: PieceEvent, reader: EventReader) -> Heard | None:
    """Hear a review, or a comment on a line: both are known by the review they belong to."""
    number, opener = _review_of(event), reader.us.agent(event.pull.user)
    name = Name("review", number) if number is not None else _name(event)
    heard = _hear(event, name, opener, reader.us)
    # A part of a review that mentions no agent decides nothing: another part may.
    if heard is None or not (heard.mentions or opener):
        return None
    return replace(heard, metadata=InReview(number) if number is not None else None)


def hear_edit(event: PieceEvent, reader: EventReader) -> Heard | None:
    """Hear a single piece of a review that mentions further agents after an edit."""
    part = event.part
    at = part.updated_at if isinstance(part, Comment) else event.pull.updated_at
    heard = _hear(event, replace(_name(event), at=at), None, reader.us)
    return heard if heard is not None and heard.mentions else None


def correct_piece(event: PieceEvent, reader: EventReader) -> Changed | None:
    """Tell that a piece of a review was edited or deleted."""
    number, named = _review_of(event), agents_before(event, event.part, reader.us)
    if number is None:
        mine = named[:1] == (reader.agent,)
        return change(event, event.pull, _name(event), event.part, reader.us) if mine else None
    changed = change(event, event.pull, Name("review", number), event.part, reader.us)
    piece = Piece(number, named, reader.us.agent(event.pull.user))
    return changed and replace(changed, metadata=piece)


def complete(
    heard: Heard, review: GitHubReview, comments: Sequence[Comment], us: Identities
) -> Heard:
    """Make one message of a review and all its comments on lines, which are one person's words."""
    parts = [strip(review.body or ""), *(strip(each.body or "") for each in comments)]
    if len(comments) == 1 and not parts[0].text.strip():
        text, more = parts[1].text, [_lines(comments[0])]
    else:
        text = _text(review, comments)
        lines = wording.COMMENTS_ON_LINES.format(number=len(comments)) if comments else ""
        more = [wording.VERDICTS.get(review.state.lower(), ""), lines]
    hunks = dict.fromkeys(each.diff_hunk for each in comments if each.diff_hunk)
    hidden = Visible("", sum(part.hidden for part in parts))
    mentions = tuple(dict.fromkeys(name for part in parts for name in us.mentioned(part.text)))
    number = Spot.parse(heard.external).number
    return replace(
        heard,
        text=text,
        spoken=command_in(text, mentions, heard.reply_to, us),
        mentions=mentions,
        pointed=point(number, mentions, heard.reply_to, *more),
        context="\n\n".join(filter(None, (*map(strip_hunk, hunks), hidden.remark))),
        link=review.html_url or heard.link,
        said_at=moment(review.submitted_at),
    )


def complete_change(
    changed: Changed,
    piece: Piece,
    review: GitHubReview | None,
    comments: Sequence[Comment],
    reader: EventReader,
) -> Changed | None:
    """Return a review's text after a piece of it changed; None if another App reports it."""
    text = _text(review, comments) if review is not None else ""
    named = (*piece.named, *reader.us.mentioned(text), piece.opener)
    return replace(changed, text=text or None) if named[0] == reader.agent else None


def strip_hunk(hunk: str) -> str:
    """Remove invisible characters from a piece of a diff; comments in it are code."""
    return strip(f"````\n{hunk}\n````").text.removeprefix("````\n").removesuffix("\n````")


def _hear(event: PieceEvent, name: Name, opener: str | None, us: Identities) -> Heard | None:
    part, said = event.part, strip(event.part.body or "")
    # An approval may have no text; if a review has none, its comments are heard.
    if not said.text.strip() or not is_own(event, part.user):
        return None
    mentions = new_mentions(event, said.text, us)
    heard = hear(event, event.pull, Words(name, said, mentions), us)
    if heard is None:
        return None
    lines, hunk = (_lines(part), part.diff_hunk) if isinstance(part, Comment) else ("", "")
    return replace(
        heard,
        spoken=command_in(said.text, mentions, opener, us),
        reply_to=opener,
        pointed=point(event.pull.number, mentions, opener, lines),
        context="\n\n".join(filter(None, (hunk and strip_hunk(hunk), heard.context))),
        link=part.html_url or heard.link,
    )


def _review_of(event: PieceEvent) -> int | None:
    part = event.part
    return part.pull_request_review_id if isinstance(part, Comment) else part.id


def _name(event: PieceEvent) -> Name:
    return Name("review-comment" if isinstance(event.part, Comment) else "review", event.part.id)


def _text(review: GitHubReview, comments: Sequence[Comment]) -> str:
    """Write a review as text: its own words, then each comment below the lines it is about."""
    said = (f"{_lines(each)}:\n{strip(each.body or '').text}" for each in comments)
    return "\n\n".join(filter(str.strip, (strip(review.body or "").text, *said)))


def _lines(comment: Comment) -> str:
    """Say in one line where a comment points."""
    path = " ".join(strip(comment.path).text.replace("`", "'").split())[:PATH_CHARACTERS]
    last = comment.line or comment.original_line
    if last is None:
        return f"`{path}`"
    return f"`{path}`, {wording.lines(comment.start_line, last)}"


_FENCE = re.compile(r"(?P<margin>[ \t]*)(?P<bar>`{3,}|~{3,})[ \t]*(?P<info>[^`]*)")
_REMARK = re.compile(
    r"(?:[-*] )?`?(?P<path>[^\s`:][^`:]*):(?P<first>[0-9]{1,7})(?:-(?P<last>[0-9]{1,7}))?`?:"
    r"[ \t]*(?P<words>.*)"
)
_HUNK = re.compile(r"^@@ -[0-9,]+ \+(?P<first>[0-9]+)(?:,(?P<count>[0-9]+))? @@", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class LineRemark:
    """What an agent says about some lines of a file, as they are after the change."""

    path: str
    first: int
    last: int
    words: str

    def __str__(self) -> str:
        lines = f"{self.first}-{self.last}" if self.first != self.last else f"{self.last}"
        return f"- `{self.path}:{lines}`: {indent(self.words, '  ').strip()}"


def read_remarks(answer: str) -> tuple[str, tuple[LineRemark, ...]]:
    """Take the blocks of comments out of an answer; returns what is left, and the comments."""
    kept: list[str] = []
    remarks: list[tuple[re.Match[str], list[str]]] = []
    for line, is_review, is_code in _answer_lines(answer):
        begins = None if is_code else _REMARK.fullmatch(line)
        if not is_review:
            kept.append(line)
        elif begins is not None:
            remarks.append((begins, []))
        elif remarks:
            remarks[-1][1].append(line)
        else:
            kept.append(line)
    return "\n".join(kept).strip(), tuple(_remark(*each) for each in remarks)


def sort_remarks(
    remarks: Sequence[LineRemark], patches: Mapping[str, str]
) -> tuple[Sequence[LineRemark], Sequence[LineRemark]]:
    """Separate the comments that fit lines of a diff from all others."""
    shown = {
        path: [
            range(int(hunk["first"]), int(hunk["first"]) + int(hunk["count"] or 1))
            for hunk in _HUNK.finditer(patch)
        ]
        for path, patch in patches.items()
    }
    fitting = [
        each
        for each in remarks
        if each.words
        and any(each.first in hunk and each.last in hunk for hunk in shown.get(each.path, ()))
    ]
    return fitting, [each for each in remarks if each not in fitting]


def _answer_lines(answer: str) -> Iterator[tuple[str, bool, bool]]:
    """Read an answer line by line; tells whether each is in a review, and whether it is code.

    The fences that open and close a review are left out. Inside it another one, such as a
    suggestion, is opened by its own words or by its margin.
    """
    opened = nested = ""
    is_review = False
    for line in answer.split("\n"):
        fence = _FENCE.fullmatch(line)
        bar, info = (fence["bar"], fence["info"].strip()) if fence is not None else ("", "")
        closes = bool(bar) and not info
        if nested:
            yield line, True, True
            nested = "" if closes and bar.startswith(nested) else nested
        elif is_review and fence is not None and (info or fence["margin"]):
            nested = bar
            yield line, True, True
        elif opened:
            ends = closes and bar.startswith(opened)
            if not (is_review and ends):
                yield line, is_review, not is_review
            opened, is_review = ("", False) if ends else (opened, is_review)
        else:
            opened, is_review = bar, info == "review"
            if not is_review:
                yield line, False, bool(bar)


def _remark(begins: re.Match[str], more: Sequence[str]) -> LineRemark:
    lines = sorted((int(begins["first"]), int(begins["last"] or begins["first"])))
    words = "\n".join((begins["words"], dedent("\n".join(more)))).strip()
    return LineRemark(begins["path"].removeprefix("./"), lines[0], lines[1], words)
