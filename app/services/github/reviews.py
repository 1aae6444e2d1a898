"""Reads reviews of pull requests: a review and its line comments are one message; pure.

GitHub reports a review piece by piece. Each piece names its review, the adapter reads the whole of
it, and this module makes one message of it. A review changes with any of its pieces; of all Apps
that receive the event, only one reports it: that of the agent which is named first, else of the
agent that opened the pull request.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.core.inbound import Changed, Heard
from app.markdown.hidden import Visible, strip
from app.services.github.mentions import Identities
from app.services.github.messages import (
    Reader,
    Words,
    agents_before,
    change,
    command_in,
    hear,
    is_own,
    new_mentions,
    point,
)
from app.services.github.names import Name, Spot
from app.services.github.payloads import Comment, LineCommentEvent, Review, ReviewEvent

PATH_CHARACTERS = 200
"""The longest file name that is shown: the author of the pull request chose it."""
VERDICTS = {"approved": "approved", "changes_requested": "changes requested"}

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


def hear_piece(event: PieceEvent, reader: Reader) -> Heard | None:
    """Hear a review, or a comment on a line: both are known by the review they belong to."""
    number, opener = _review_of(event), reader.us.agent(event.pull.user)
    name = Name("review", number) if number is not None else _name(event)
    heard = _hear(event, name, opener, reader.us)
    # A part of a review that mentions no agent decides nothing: another part may.
    if heard is None or not (heard.mentions or opener):
        return None
    return replace(heard, metadata=InReview(number) if number is not None else None)


def hear_edit(event: PieceEvent, reader: Reader) -> Heard | None:
    """Hear a single piece of a review that mentions further agents after an edit."""
    part = event.part
    at = part.updated_at if isinstance(part, Comment) else event.pull.updated_at
    heard = _hear(event, replace(_name(event), at=at), None, reader.us)
    return heard if heard is not None and heard.mentions else None


def correct_piece(event: PieceEvent, reader: Reader) -> Changed | None:
    """Tell that a piece of a review was edited or deleted."""
    number, named = _review_of(event), agents_before(event, event.part, reader.us)
    if number is None:
        mine = named[:1] == (reader.agent,)
        return change(event, event.pull, _name(event), event.part, reader.us) if mine else None
    changed = change(event, event.pull, Name("review", number), event.part, reader.us)
    piece = Piece(number, named, reader.us.agent(event.pull.user))
    return changed and replace(changed, metadata=piece)


def complete(heard: Heard, review: Review, comments: Sequence[Comment], us: Identities) -> Heard:
    """Make one message of a review and all its comments on lines, which are one person's words."""
    parts = [strip(review.body or ""), *(strip(each.body or "") for each in comments)]
    if len(comments) == 1 and not parts[0].text.strip():
        text, more = parts[1].text, [_lines(comments[0])]
    else:
        text = _text(review, comments)
        lines = f"{len(comments)} comments on lines" if comments else ""
        more = [VERDICTS.get(review.state.lower(), ""), lines]
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
    )


def complete_change(
    changed: Changed,
    piece: Piece,
    review: Review | None,
    comments: Sequence[Comment],
    reader: Reader,
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


def _text(review: Review, comments: Sequence[Comment]) -> str:
    """Write a review as text: its own words, then each comment below the lines it is about."""
    said = (f"{_lines(each)}:\n{strip(each.body or '').text}" for each in comments)
    return "\n\n".join(filter(str.strip, (strip(review.body or "").text, *said)))


def _lines(comment: Comment) -> str:
    """Say in one line where a comment points."""
    path = " ".join(strip(comment.path).text.replace("`", "'").split())[:PATH_CHARACTERS]
    last = comment.line or comment.original_line
    if last is None:
        return f"`{path}`"
    first = comment.start_line
    lines = f"lines {first}-{last}" if first is not None and first != last else f"line {last}"
    return f"`{path}`, {lines}"
